"""Multi-objective search on one CUDA device: edge costs, descents under weights, and Pareto local search."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cpu.pareto.engine import CpuFronts
from pymoo_gpuaco.backends.cuda.device import Device, Part, Source, words
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
# Encoding of a chain, see `ChainCode`: exchanges that name a candidate, and bits.
_OPEN = MOST_EXCHANGES - 1
_BITS = 64
_EXCHANGES_BITS = 3


class Edges(Part):
    """Costs of all edges (n, n, k) and of c candidates per city; kernels take both as ``COSTS_PARAMETERS``."""

    def __init__(self, device: Device, instance: FrontInstance) -> None:
        self._device, self._instance = device, instance
        table = instance.costs.table
        with np.errstate(over="ignore"):
            floats = table.astype(np.float32)
        exact = bool((floats == table).all())  # otherwise float32 would round costs
        self._table: NDArray[Any] = floats if exact else table
        self.c = instance.costs.near.shape[1]
        #: definitions of every kernel that reads costs
        self.definitions = {"OBJECTIVES": instance.k, "COST": "float" if exact else "double"}
        self.needed = {"costs": self._table.nbytes}

    def prepare(self) -> None:
        """Upload the costs."""
        self._device.write("costs", self._table)
        self._upload_candidates(self._instance.costs.neighbours, self._instance.costs.near)

    def use(self, candidates: NDArray[np.int32]) -> None:
        """Replace the candidates (n, ..)."""
        instance = self._instance
        self._upload_candidates(candidates, make_costs(instance.parts, candidates, instance.costs.table).near)

    def _upload_candidates(self, candidates: NDArray[np.int32], near: NDArray[np.float64]) -> None:
        lists = candidates.astype(np.uint16)
        costs = near.astype(self._table.dtype)
        self._device.take({"candidates": lists.nbytes, "candidate_costs": costs.nbytes})
        self._device.write("candidates", lists)
        self._device.write("candidate_costs", costs)
        self.c = lists.shape[1]

    def arguments(self) -> tuple[Any, ...]:
        """Return ``COSTS_PARAMETERS`` of a launch."""
        a = self._device.arrays
        return a["costs"], a["candidate_costs"], a["candidates"], self._instance.n, self.c


class ChainCode(NamedTuple):
    """Encoding of a chain as 64 bits, as in ``children.cuh``.

    From the high bits: member, starting city and direction, number of exchanges, a candidate for each but the last.
    """

    step_bits: int
    index_bits: int

    @classmethod
    def of(cls, n: int, c: int) -> ChainCode:
        """Return the encoding for n cities with c candidates each."""
        return cls((2 * n - 1).bit_length(), (2 * c - 1).bit_length())

    @property
    def _below(self) -> int:
        """Number of bits below the member."""
        return self.step_bits + _EXCHANGES_BITS + _OPEN * self.index_bits

    @property
    def members(self) -> int:
        """Number of members that the encoding can hold."""
        return 1 << min(30, _BITS - self._below)

    def member(self, codes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return the member (e,) of each chain."""
        return (codes >> np.uint64(self._below)).astype(np.int32)

    def exchanges(self, codes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Return the number of exchanges (e,) of each chain."""
        return ((codes >> np.uint64(_OPEN * self.index_bits)) & np.uint64(7)).astype(np.int32)


class CudaFronts(Part):
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
        n = instance.n
        if n > MOST_FOR_TABLE:
            raise BackendUnavailable(
                f"several objectives on CUDA: at most {MOST_FOR_TABLE} cities, got {n}; use backend='cpu'"
            )
        if not instance.symmetric:
            raise BackendUnavailable("several objectives on CUDA need symmetric distances; use backend='cpu'")
        self.instance = instance
        self.device = Device(device)
        self.stop = self.device.stop
        self._edges = edges = Edges(self.device, instance)
        self._cores = CpuFronts(instance)
        self._cores.stop = self.stop
        self.follow = self._cores.follow  # not faster on the device, because all tours are copied
        shared = {
            "descend_tours": 11 * n,
            "explore_members": 12 * (n + n % 2) + 8 * _COLLECTED * (_THREADS // 32),
        }
        descend = {**edges.definitions, "THREADS": _DESCENT_THREADS}
        explore = {**edges.definitions, "THREADS": _THREADS}
        self.sources = [
            Source("pareto/descend.cu", descend, ["descend_tours"], shared),
            Source("pareto/explore.cu", explore, ["explore_members", "gather_children"], shared),
        ]
        self.needed = {
            "unit": 8 * instance.k,
            "child_keys": 8 * _SLOTS,
            "child_codes": 8 * _SLOTS,
            "child_slots": 4 * _MOST_FOUND,
            "child_counts": 8,
            "gathered_codes": 8 * _MOST_FOUND,
            "gathered_chains": 4 * MOST_EXCHANGES * _MOST_FOUND,
            "gathered_lengths": 8 * instance.k * _MOST_FOUND,
        }
        self.device.set_up([edges, self], _ADVICE, self._compile_follow)

    def _compile_follow(self) -> None:
        """Compile the host part of exploration, by a call without children, while the kernels compile."""
        n, k = self.instance.n, self.instance.k
        none, lengths = np.empty(0, np.int32), np.empty((0, k))
        counts = np.empty(0, np.int64)
        members = Members(np.empty((0, n), np.int32), lengths, lengths, lengths[:, 0], counts, counts)
        self.follow(members, Children(none, none, np.empty((0, 2 * MOST_EXCHANGES), np.int32), lengths))

    def prepare(self) -> None:
        """Upload the units."""
        self.device.write("unit", self.instance.unit)

    def use(self, candidates: NDArray[np.int32]) -> None:
        """Replace the candidates (n, ..)."""
        with self.device.working():
            self._edges.use(candidates)
        self._cores.use(candidates)

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
                *self._edges.arguments(),
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

        If a launch overflows the table, each half of its members is explored separately; a single member is explored
        from half as many cities, and finally with shorter chains. A member has at most ``MOST_CHILDREN`` children.
        """
        n, m = self.instance.n, len(members.tours)
        code = ChainCode.of(n, self._edges.c)
        found: list[Children] = []
        pending = [
            (first, min(m, first + code.members), n, MOST_EXCHANGES) for first in range(0, m, code.members)
        ][::-1]
        with self.device.working():
            member_arguments, front_arguments = self._members(members), self._front(front)
            while pending and not self.device.stop.ended():
                first, last, starts, most = pending.pop()
                children = self._explore(code, member_arguments, front_arguments, first, last, starts, most)
                if children is not None:
                    found.append(children)
                elif last - first > 1:
                    middle = (first + last) // 2
                    pending += [(middle, last, starts, most), (first, middle, starts, most)]
                elif starts > 1:
                    pending.append((first, last, starts // 2, most))
                else:
                    pending.append((first, last, starts, most - 1))
        if not found:
            return self._read_children(code, 0, 0)
        return Children(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))

    def _members(self, members: Members) -> tuple[Any, ...]:
        """Upload members; return tours, positions, lengths, weights, slack, exchanges and begin."""
        put, tours = self.device.put, members.tours.astype(np.uint16)
        positions = np.empty_like(tours)
        np.put_along_axis(positions, members.tours, np.arange(self.instance.n, dtype=np.uint16)[None], axis=1)
        return (
            put("members", tours),
            put("member_places", positions),
            put("member_lengths", np.asarray(members.lengths, np.float64)),
            put("member_weights", np.asarray(members.weights, np.float64)),
            put("member_slack", np.asarray(members.slack, np.float64)),
            put("member_exchanges", members.exchanges.astype(np.int32)),
            put("member_begin", members.begin.astype(np.int32)),
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
        self,
        code: ChainCode,
        member_arguments: tuple[Any, ...],
        front_arguments: tuple[Any, ...],
        first: int,
        last: int,
        starts: int,
        most: int,
    ) -> Children | None:
        """Explore members first .. last-1; return None if the table overflows."""
        device, a = self.device, self.device.arrays
        parts = -(-_WAVES * device.limits.multiprocessors // (last - first))
        parts = max(1, min(parts, _MOST_PARTS))
        tours, positions, lengths, *_, begin = member_arguments
        table = a["child_keys"], a["child_codes"], a["child_slots"], a["child_counts"]
        a.zero("child_counts", 8)
        device.launch(
            "explore_members",
            (last - first) * parts,
            _THREADS,
            *self._edges.arguments(),
            *member_arguments,
            first,
            parts,
            starts,
            most,
            *front_arguments,
            a["unit"],
            *table,
            np.uint32(_SLOTS - 1),
            _MOST_FOUND,
            *code,
            a["halt"],
        )
        device.call(
            "gather_children",
            device.spread(_MOST_FOUND),
            *self._edges.arguments(),
            tours,
            positions,
            lengths,
            begin,
            first,
            *table,
            *code,
            a["gathered_codes"],
            a["gathered_chains"],
            a["gathered_lengths"],
        )
        device.wait_or_stop()
        counts = np.empty(2, np.int32)
        device.read(counts, "child_counts")
        if not counts[1]:
            return self._read_children(code, first, int(counts[0]))
        a.zero("child_keys", 8 * _SLOTS)
        a.zero("child_codes", 8 * _SLOTS)
        return None

    def _read_children(self, code: ChainCode, first: int, e: int) -> Children:
        """Return the first ``MOST_CHILDREN`` children of each member, of e in total, in order."""
        codes = np.empty(e, np.uint64)
        chains = np.empty((e, 2 * MOST_EXCHANGES), np.uint16)
        lengths = np.empty((e, self.instance.k))
        if e > 0:
            self.device.read(codes, "gathered_codes")
            self.device.read(chains, "gathered_chains")
            self.device.read(lengths, "gathered_lengths")
        order = np.argsort(codes)
        member = code.member(codes[order])
        order = order[np.arange(e) - np.searchsorted(member, member) < MOST_CHILDREN]
        codes = codes[order]
        owner = code.member(codes) + np.int32(first)
        return Children(owner, code.exchanges(codes), chains[order].astype(np.int32), lengths[order])
