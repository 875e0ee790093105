"""Multi-objective search on one CUDA device: edge costs, descents under weights, and Pareto local search."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cpu.pareto.engine import CpuFronts
from pymoo_gpuaco.backends.cuda.device import Device, KernelGroup, Source, words
from pymoo_gpuaco.backends.errors import BackendUnavailable
from pymoo_gpuaco.pareto.device import MOST_CHILDREN, MOST_EXCHANGES, Children, Front, Members
from pymoo_gpuaco.pareto.instance import MOST_FOR_TABLE, FrontInstance, make_costs

_ADVICE = "fewer cities need less"
_DESCENT_THREADS = 256  # per tour
_MOST_FOUND = 1 << 20  # maximum number of children per launch
_SLOTS = 1 << 22  # slots of the hash table; more than ``_MOST_FOUND``, because threads notice the limit late
_THREADS = 128  # per block of exploration
_COLLECTED = 64  # chains that a warp collects, see explore.cu
# Blocks per multiprocessor: several waves of blocks balance the load.
_WAVES = 24
_MOST_PARTS = 64  # maximum number of blocks that explore one member
# Arrays of the tree that kernels read.
_TREE = ("ideal", "nadir", "child", "sibling", "parent", "held", "first")
_OPEN = MOST_EXCHANGES - 1  # exchanges of a chain that name a candidate


class CudaFronts(KernelGroup):
    """``FrontDevice`` on one CUDA device.

    Parameters
    ----------
    instance : the problem, symmetric, of at most ``MOST_FOR_TABLE`` cities.
    device : index of the CUDA device.

    Raises
    ------
    BackendUnavailable : for other instances, and without a driver, PyCUDA or nvcc; the message says what to install.
    MemoryError : if the costs of all edges do not fit into device memory.
    """

    kind: str = "cuda"
    times = 8

    def __init__(self, instance: FrontInstance, device: int = 0) -> None:
        n, k, table = instance.n, instance.k, instance.costs.table
        if n > MOST_FOR_TABLE:
            raise BackendUnavailable(
                f"several objectives on CUDA: at most {MOST_FOR_TABLE} cities, got {n}; use backend='cpu'"
            )
        if not instance.symmetric:
            raise BackendUnavailable("several objectives on CUDA need symmetric distances; use backend='cpu'")
        self.instance = instance
        self.device = Device(device)
        self.stop = self.device.stop
        self._cores = CpuFronts(instance)
        self._cores.stop = self.stop
        self.follow = self._cores.follow  # not faster on the device, because all tours are copied
        with np.errstate(over="ignore"):
            floats = table.astype(np.float32)
        exact = bool((floats == table).all())  # otherwise float32 would round costs
        self._table: NDArray[Any] = floats if exact else table
        shared = {
            "descend_tours": 11 * n,
            "explore_members": 12 * (n + n % 2) + 8 * _COLLECTED * (_THREADS // 32),
        }
        costs = {"OBJECTIVES": k, "COST": "float" if exact else "double"}
        explore = ["explore_members", "gather_children"]
        self.sources = [
            Source("pareto/descend.cu", {**costs, "THREADS": _DESCENT_THREADS}, ["descend_tours"], shared),
            Source("pareto/explore.cu", {**costs, "THREADS": _THREADS}, explore, shared),
        ]
        self.needed = {
            "costs": self._table.nbytes,
            "unit": 8 * k,
            "child_keys": 8 * _SLOTS,
            "child_codes": 8 * _SLOTS,
            "child_slots": 4 * _MOST_FOUND,
            "child_counts": 8,
            "gathered_codes": 8 * _MOST_FOUND,
            "gathered_chains": 4 * MOST_EXCHANGES * _MOST_FOUND,
            "gathered_lengths": 8 * k * _MOST_FOUND,
        }
        self.device.set_up([self], _ADVICE)

    def prepare(self) -> None:
        """Upload the costs and units."""
        self.device.write("costs", self._table)
        self.device.write("unit", self.instance.unit)
        self._upload_candidates(self.instance.costs.neighbours, self.instance.costs.near)

    def use(self, candidates: NDArray[np.int32]) -> None:
        """Replace the candidates (n, ..)."""
        self._cores.use(candidates)
        costs = make_costs(self.instance.parts, candidates, self.instance.costs.table)
        with self.device.working():
            self._upload_candidates(candidates, costs.near)

    def _upload_candidates(self, candidates: NDArray[np.int32], near: NDArray[np.float64]) -> None:
        """Upload c candidates per city (n, c) and the costs of their edges (n, c, k)."""
        lists, costs = candidates.astype(np.uint16), near.astype(self._table.dtype)
        a, put, self._c = self.device.arrays, self.device.put, lists.shape[1]
        near_costs, neighbours = put("candidate_costs", costs), put("candidates", lists)
        self._costs = a["costs"], near_costs, neighbours, self.instance.n, self._c  #: ``COSTS_PARAMETERS``

    def descend(
        self, tours: NDArray[np.int32], weights: NDArray[np.float64], kicks: int, key: int
    ) -> NDArray[np.int32]:
        """Return tours (m, n) improved by ``kicks`` kicks, each under its weights (m, k); a block per tour."""
        m, device, found = len(tours), self.device, tours.astype(np.uint16)
        if m == 0:
            return tours.copy()
        with device.working():
            device.launch(
                "descend_tours",
                m,
                _DESCENT_THREADS,
                *self._costs,
                device.put("descending", found),
                device.put("descending_weights", np.asarray(weights, np.float64)),
                kicks,
                *words(key),
                device.arrays["halt"],
            )
            device.wait_or_stop()
            device.read(found, "descending")
        return found.astype(np.int32)

    def explore(self, members: Members, front: Front) -> Children:
        """Return the children of members, each length vector once, ordered by member and chain.

        If a launch overflows the table, each half of its members is explored separately, and a single member with
        shorter chains. A member has at most ``MOST_CHILDREN`` children.
        """
        m, bits = len(members.tours), ((2 * self.instance.n - 1).bit_length(), (2 * self._c - 1).bit_length())
        at_once = 1 << min(30, 64 - _member_bit(bits))
        found = [self._read_children(bits, 0, 0)]
        pending = [(first, min(m, first + at_once), MOST_EXCHANGES) for first in range(0, m, at_once)][::-1]
        with self.device.working():
            inputs = (*self._costs, *self._members(members), *self._front(front), self.device.arrays["unit"])
            while pending and not self.device.stop.ended():
                first, last, most = pending.pop()
                children = self._explore(bits, inputs, first, last, most)
                if children is not None:
                    found.append(children)
                elif last - first > 1:
                    middle = (first + last) // 2
                    pending += [(middle, last, most), (first, middle, most)]
                elif most > 2:
                    pending.append((first, last, most - 1))
        return Children(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))

    def _members(self, members: Members) -> tuple[Any, ...]:
        """Upload members; return tours, positions, lengths, begin, weights, slack and exchanges."""
        put, tours = self.device.put, members.tours.astype(np.uint16)
        positions = np.empty_like(tours)
        np.put_along_axis(positions, members.tours, np.arange(self.instance.n, dtype=np.uint16)[None], axis=1)
        return (
            put("members", tours),
            put("member_places", positions),
            put("member_lengths", np.asarray(members.lengths, np.float64)),
            put("member_begin", members.begin.astype(np.int32)),
            put("member_weights", np.asarray(members.weights, np.float64)),
            put("member_slack", np.asarray(members.slack, np.float64)),
            put("member_exchanges", members.exchanges.astype(np.int32)),
        )

    def _front(self, front: Front) -> tuple[Any, ...]:
        """Upload the front; return ``FRONT_PARAMETERS`` and the table of known keys."""
        put = self.device.put
        points = put("front_points", np.asarray(front.points, np.float64))
        tree: list[Any] = [0] * (len(_TREE) + 1)
        if self.instance.k > 2:
            nodes = int(front.tree.counts[0])
            tree = [put(f"tree_{name}", getattr(front.tree, name)[:nodes]) for name in _TREE]
            tree.append(put("tree_follows", front.tree.follows))
        met = put("met", front.seen), np.uint32(len(front.seen) - 1)
        return points, len(front.points), front.rank, *tree, *met

    def _explore(
        self, bits: tuple[int, int], inputs: tuple[Any, ...], first: int, last: int, most: int
    ) -> Children | None:
        """Explore members first .. last-1; return None if the table overflows."""
        device, a, members = self.device, self.device.arrays, last - first
        parts = max(1, min(-(-_WAVES * device.limits.multiprocessors // members), _MOST_PARTS))
        table = a["child_keys"], a["child_codes"], a["child_slots"], a["child_counts"]
        a.zero("child_counts", 8)
        limits = np.uint32(_SLOTS - 1), _MOST_FOUND
        share = (first, parts, most)
        explored = (*inputs, *share, *table, *limits, *bits, a["halt"])
        device.launch("explore_members", members * parts, _THREADS, *explored)
        gathered = a["gathered_codes"], a["gathered_chains"], a["gathered_lengths"]
        # of the inputs the costs, and tours, positions, lengths and begin of the members
        gather = (*inputs[:9], first, *table, *bits, *gathered)
        device.call("gather_children", device.grid_threads(_MOST_FOUND), *gather)
        device.wait_or_stop()
        counts = np.empty(2, np.int32)
        device.read(counts, "child_counts")
        if not counts[1]:
            return self._read_children(bits, first, int(counts[0]))
        a.zero("child_keys", 8 * _SLOTS)
        a.zero("child_codes", 8 * _SLOTS)
        return None

    def _read_children(self, bits: tuple[int, int], first: int, e: int) -> Children:
        """Return the first ``MOST_CHILDREN`` children of each member, of e in total, in order."""
        codes = np.empty(e, np.uint64)
        chains = np.empty((e, 2 * MOST_EXCHANGES), np.uint16)
        lengths = np.empty((e, self.instance.k))
        if e > 0:
            self.device.read(codes, "gathered_codes")
            self.device.read(chains, "gathered_chains")
            self.device.read(lengths, "gathered_lengths")
        order = np.argsort(codes)
        member = (codes[order] >> np.uint64(_member_bit(bits))).astype(np.int32)
        chosen = np.arange(e) - np.searchsorted(member, member) < MOST_CHILDREN
        order, owner = order[chosen], member[chosen] + np.int32(first)
        exchanges = (codes[order] >> np.uint64(_OPEN * bits[1]) & np.uint64(7)).astype(np.int32)
        return Children(owner, exchanges, chains[order].astype(np.int32), lengths[order])


def _member_bit(bits: tuple[int, int]) -> int:
    """Return the lowest bit of the member in the code of a chain; ``bits``: fields of ``ChainCode`` (children.cuh)."""
    step_bits, index_bits = bits
    return step_bits + 3 + _OPEN * index_bits
