"""All chains from many members side by side, and the tours that they lead to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, Part, Source
from pymoo_gpuaco.backends.cuda.pareto.edges import Edges
from pymoo_gpuaco.backends.cuda.pareto.naming import Naming
from pymoo_gpuaco.pareto.device import MOST_CHILDREN, MOST_EXCHANGES, Children, Front, Members
from pymoo_gpuaco.pareto.instance import FrontInstance

_MOST_FINDS = 1 << 20  # children of one launch
_SLOTS = 1 << 22  # of their keys: threads that see too late that there are too many find free ones
_THREADS = 128
_COLLECTED = 64  # chains that a warp collects, see look.cu
# Blocks that follow one another on a multiprocessor's places, so that all end at about the same time.
_ROUNDS = 24
_MOST_PARTS = 64  # of a member's chains
_TREE = ("ideal", "nadir", "child", "sibling", "parent", "held", "first")


class Looks(Part):
    """``look`` and ``follow`` of the protocol."""

    def __init__(self, device: Device, instance: FrontInstance, edges: Edges) -> None:
        self._device, self._instance, self._edges = device, instance, edges

    # ---- Part

    def sources(self) -> list[Source]:
        """Return the kernels."""
        kernels = ["place_members", "look_at_members", "gather_finds", "follow_chains"]
        return [Source("pareto/look.cu", {**self._edges.definitions(), "THREADS": _THREADS}, kernels)]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        return {
            "unit": 8 * self._instance.k,
            "find_keys": 8 * _SLOTS,
            "find_names": 8 * _SLOTS,
            "find_slots": 4 * _MOST_FINDS,
            "find_counts": 8,
            "found_names": 8 * _MOST_FINDS,
            "found_chains": 4 * MOST_EXCHANGES * _MOST_FINDS,
            "found_lengths": 8 * self._instance.k * _MOST_FINDS,
        }

    def prepare(self) -> None:
        """Nothing has been found yet."""
        self._device.write("unit", self._instance.unit)
        self._clear()

    def _clear(self) -> None:
        self._device.arrays.zero("find_keys", 8 * _SLOTS)
        self._device.arrays.zero("find_names", 8 * _SLOTS)

    # ---- looks

    def look(self, members: Members, front: Front) -> Children:
        """Return the children of members, each lengths once, in the order of members and of their chains.

        Where there are more than one launch has room for, the first half of the members is looked at before the
        second. One member alone is looked at from half as many cities, and at last by shorter chains. Of a member come
        ``MOST_CHILDREN`` at most.
        """
        n, m = self._instance.n, len(members.tours)
        naming = Naming.of(n, self._edges.c)
        given = self._members(members)
        known = self._front(front)
        found: list[Children] = []
        waiting = [
            (first, min(m, first + naming.members), n, MOST_EXCHANGES)
            for first in range(0, m, naming.members)
        ][::-1]
        while waiting and not self._device.stop.ended():
            first, last, starts, most = waiting.pop()
            children = self._search(naming, given, known, first, last, starts, most)
            if children is not None:
                found.append(children)
            elif last - first > 1:
                middle = (first + last) // 2
                waiting += [(middle, last, starts, most), (first, middle, starts, most)]
            elif starts > 1:
                waiting.append((first, last, starts // 2, most))
            else:
                waiting.append((first, last, starts, most - 1))
        if not found:
            return self._found(naming, 0, 0)
        return Children(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))

    def _members(self, members: Members) -> tuple[Any, ...]:
        """Copy members to the device; return tours, places, lengths, weights, slack, exchanges and begin."""
        put, n, m = self._device.put, self._instance.n, len(members.tours)
        tours = put("members", members.tours.astype(np.uint16))
        self._device.grow({"member_places": 2 * m * n}, spare=0.5)
        places = self._device.arrays["member_places"]
        self._device.call("place_members", self._device.spread(m * n), tours, n, m, places)
        return (
            tours,
            places,
            put("member_lengths", np.asarray(members.lengths, np.float64)),
            put("member_weights", np.asarray(members.weights, np.float64)),
            put("member_slack", np.asarray(members.slack, np.float64)),
            put("member_exchanges", members.exchanges.astype(np.int32)),
            put("member_begin", members.begin.astype(np.int32)),
        )

    def _front(self, front: Front) -> tuple[Any, ...]:
        """Copy what is known to the device; return ``FRONT_PARAMETERS``, and the table of keys."""
        put = self._device.put
        points = put("front_points", np.asarray(front.points, np.float64))
        tree: list[Any] = [0] * (len(_TREE) + 1)
        if self._instance.k > 2:
            nodes = int(front.tree.counts[0])
            tree = [put(f"tree_{name}", getattr(front.tree, name)[:nodes]) for name in _TREE]
            tree.append(put("tree_follows", front.tree.follows))
        met = put("met", front.met), np.uint32(len(front.met) - 1)
        return points, len(front.points), front.rank, *tree, *met

    def _search(
        self,
        naming: Naming,
        given: tuple[Any, ...],
        known: tuple[Any, ...],
        first: int,
        last: int,
        starts: int,
        most: int,
    ) -> Children | None:
        """Look at members first .. last-1; None: there was no room for what was found."""
        device, a, n = self._device, self._device.arrays, self._instance.n
        parts = -(-_ROUNDS * device.limits.multiprocessors // (last - first))
        parts = max(1, min(parts, _MOST_PARTS))
        tours, places, lengths, *_, begin = given
        finds = a["find_keys"], a["find_names"], a["find_slots"], a["find_counts"]
        a.zero("find_counts", 8)
        device.launch(
            "look_at_members",
            (last - first) * parts,
            _THREADS,
            *self._edges.arguments(),
            *given,
            first,
            parts,
            starts,
            most,
            *known,
            a["unit"],
            *finds,
            np.uint32(_SLOTS - 1),
            _MOST_FINDS,
            *naming,
            a["halt"],
            shared=12 * (n + n % 2) + 8 * _COLLECTED * (_THREADS // 32),
        )
        device.call(
            "gather_finds",
            device.spread(_MOST_FINDS),
            *self._edges.arguments(),
            tours,
            places,
            lengths,
            begin,
            first,
            *finds,
            *naming,
            a["found_names"],
            a["found_chains"],
            a["found_lengths"],
        )
        device.wait_or_stop()
        counts = np.empty(2, np.int32)
        device.read(counts, "find_counts")
        if not counts[1]:
            return self._found(naming, first, int(counts[0]))
        self._clear()
        return None

    def _found(self, naming: Naming, first: int, e: int) -> Children:
        """Return the e children that have been found, in order: of each member the first ``MOST_CHILDREN``."""
        names = np.empty(e, np.uint64)
        chains = np.empty((e, 2 * MOST_EXCHANGES), np.uint16)
        lengths = np.empty((e, self._instance.k))
        if e > 0:
            self._device.read(names, "found_names")
            self._device.read(chains, "found_chains")
            self._device.read(lengths, "found_lengths")
        order = np.argsort(names)
        member = naming.member(names[order])
        order = order[np.arange(e) - np.searchsorted(member, member) < MOST_CHILDREN]
        names = names[order]
        owner = naming.member(names) + np.int32(first)
        return Children(owner, naming.exchanges(names), chains[order].astype(np.int32), lengths[order])

    # ---- tours

    def follow(self, members: Members, children: Children) -> NDArray[np.int32]:
        """Return the tours (e, n) of children."""
        n, e = self._instance.n, len(children.owner)
        tours = np.empty((e, n), np.uint16)
        if e == 0:
            return tours.astype(np.int32)
        put = self._device.put
        self._device.grow({"children": tours.nbytes}, spare=0.5)
        self._device.launch(
            "follow_chains",
            e,
            32,
            put("members", members.tours.astype(np.uint16)),
            n,
            put("child_owners", children.owner.astype(np.int32)),
            put("child_exchanges", children.exchanges.astype(np.int32)),
            put("child_chains", children.chain.astype(np.uint16)),
            self._device.arrays["children"],
            shared=6 * n,
        )
        self._device.read(tours, "children")
        return tours.astype(np.int32)
