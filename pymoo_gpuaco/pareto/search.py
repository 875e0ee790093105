"""The search for a front on any device: weighted sums first, then what members lead to, for as long as there is time.

T. Lust and J. Teghem, "Two-phase Pareto local search for the biobjective traveling salesman problem", Journal of
Heuristics 16 (2010): supported tours by weighted sums, then Pareto local search from all of them. Here a member is
looked at in stages: chains of three exchanges for all members before chains of four for any, and tours that few members
dominate when all else is done: much of a front lies more than one move away from its other members, and through such
tours there is a way. What has been looked at to the end is kicked.

Of two objectives, tours are also taken along the front, and kicked all over it, as long as that pays: see `pays`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.pareto.archive import Archive
from pymoo_gpuaco.pareto.assembly import Couples, assembled, drawn_couples
from pymoo_gpuaco.pareto.candidates import edges_of
from pymoo_gpuaco.pareto.device import Children, Front, FrontDevice, Members
from pymoo_gpuaco.pareto.every_tour import MOST_FOR_EVERY_TOUR, every_tour
from pymoo_gpuaco.pareto.instance import FrontInstance
from pymoo_gpuaco.pareto.parameters import FrontParameters
from pymoo_gpuaco.pareto.parts import WHOLE, Part
from pymoo_gpuaco.pareto.pays import KICKS, KINDS, PAIRS, WAYS, Pays
from pymoo_gpuaco.pareto.shuffling import shuffled
from pymoo_gpuaco.pareto.slopes import slopes
from pymoo_gpuaco.pareto.state import (
    archive_state,
    keys_state,
    restored_archive,
    stored_candidates,
    stored_keys,
    stored_sums,
)
from pymoo_gpuaco.pareto.weights import (
    Pairs,
    Sums,
    Ways,
    along_sides,
    corner_pairs,
    dichotomic_sums,
    direction_sums,
    single_objective_weights,
    spread,
)
from pymoo_gpuaco.runtime.keys import generator
from pymoo_gpuaco.runtime.state import State, stored_integers, stored_numbers

_FIRST_KICKS = 3  # times as many for each objective alone: all else begins with these tours
_KICKS_OF_MEMBERS = 20
_SHUFFLED = 50  # cities of a tour in a row that are put in any order before it is kicked
_MOST_TAKEN = 1 << 14  # children that the archive takes in at once: tenths of a second
_MOST_CITIES_TAKEN = 1 << 24  # and their cities together
_FEW_CITIES = 150  # up to which the sums find most supported tours, and all else takes turns
# Times as many pairs in a generation as looks: they take far less time. Of many cities, kicks take longer than looks.
_PAIRS, _PAIRS_OF_MANY = 2, 8
# Members that may dominate what is assembled: such tours lead on, where a look at them costs no more than kicks do.
# Side by side kicks cost less: an H200 found 98.9 and 99.3 % of two fronts in 25 s with 0, 95.9 and 99.4 with 2.
_RANK_OF_ASSEMBLED, _RANK_SIDE_BY_SIDE = 2, 0
_AGAIN = 4  # times as many kicks as for the first tour of a weighted sum
_KICKED = 4  # one of so many that would be looked at, where nothing is done side by side


class FrontSearch:
    """``FrontEngine``: the same on any device."""

    def __init__(self, device: FrontDevice, parameters: FrontParameters) -> None:
        self._device, self._parameters = device, parameters
        self.stop = device.stop
        self.kind: str = device.kind
        self.instance: FrontInstance = device.instance
        instance, n, k = device.instance, device.instance.n, device.instance.k
        self.archive = Archive(n, k, instance.unit, parameters.size)
        self._side_by_side = device.times > 1
        self._stages = parameters.stages_of(k, not instance.symmetric, self._side_by_side)
        self._sums = parameters.sums * device.times
        self._looks = parameters.looks_of(n, k) * device.times
        self._solved: set[bytes] = set()
        # sides of the hull, from right to left, that tours have slid along; pairs of its corners, from left to
        # right, that edges have been assembled of
        self._along: set[bytes] = set()
        self._two = k == 2 and parameters.dives
        self._few = self._two and n <= _FEW_CITIES
        self._pays = Pays()
        self._n_spread = 1  # weights all over the front that tours have been kicked under; 0 is an end of it
        self._stage = -1  # the farthest that any member was looked at by
        self._listed = instance.costs.neighbours  # candidates that looks are made by
        # rows of the archive that the last generation has added to the front
        self.joined = np.empty(0, np.intp)
        self.n_tours = 0  # built so far
        self.n_sums = 0  # weighted sums solved so far
        self._part = WHOLE

    # ---- a generation

    def search(self, key: int) -> None:
        """Run one generation; ``key`` in [0, 2**64)."""
        self.stop.lower()
        n = self.instance.n
        if n <= MOST_FOR_EVERY_TOUR:
            directed = not self.instance.symmetric
            self._take(every_tour(n, directed) if self.n_sums == 0 else np.empty((0, n), np.int32))
            self.n_sums = max(self.n_sums, 1)
            return
        if self.n_sums == 0:
            self._solve_single_objectives(key)
            return
        stage, rows = self._next(key)
        symmetric = self.instance.symmetric
        # Sums come before looks, and before more than first looks. So do edges of the corners that they have found:
        # kicks miss some corners, these find many of them, and a look at a front that lacks one is made in vain.
        if self._stage < 0 or stage > 0 or not len(rows):
            sums = self._unsolved_sums()
            if len(sums.rows):
                self._solve(sums, key)
                return
            if self._two and symmetric:
                corners = corner_pairs(self.archive, self._along, self._parameters.pairs_of(n), self._part)
                if len(corners.rows):
                    self._assemble_corners(corners, key)
                    return
        if not self._two:
            self._look_or_kick(stage, rows, key)
            return
        before = self.archive.points
        ways = along_sides(self.archive, self._along, self._parameters.ways_of(self.instance.n), self._part)
        kind = self._kind(stage, rows, ways)
        if kind == PAIRS:
            self._assemble(key)
        elif kind == WAYS:
            self._slide(ways)
        elif kind == KICKS and not self._few:
            self._kick_all_over(key)
        elif kind == KICKS:
            self._kick_members(key)
        else:
            self._look_or_kick(stage, rows, key)
        self._pays.note(kind, before, self.archive.points)

    def _kind(self, stage: int, rows: NDArray[np.intp], ways: Ways) -> int:
        """What the next generation of two objectives does."""
        symmetric = self.instance.symmetric
        if not self._few:
            # Pairs pay from the first: most of the tours between corners that kicks have found are theirs. But the host
            # assembles: a device that looks at many tours side by side would stand still meanwhile, so there they come
            # where nothing is left to look at. Then they and kicks of members take turns.
            pairs = symmetric and not (self._side_by_side and len(rows))
            look = len(rows) > 0 or self._pays.waits[PAIRS] == 0 or not symmetric
            return self._pays.choose(np.array([look, len(ways.rows) > 0, True, pairs]))
        # Of few cities sums have found all supported tours, and looks come to an end by themselves: the ways make the
        # front's gaps so small that first looks take no long time. Then all else takes turns: of the tours that are
        # missing, many lie together, far from all others, and what finds the first of them is a kick.
        begun, first = bool(self._pays.gains.any()), stage == 0 and len(rows) > 0
        return self._pays.turn(
            np.array([len(rows) > 0, len(ways.rows) > 0 and not begun, not first, symmetric and not first])
        )

    def _look_or_kick(self, stage: int, rows: NDArray[np.intp], key: int) -> None:
        if len(rows):
            self._look(stage, rows, key)
        else:
            self._kick_members(key)

    def _slide(self, ways: Ways) -> None:
        tours = self._device.slide(self._tours(ways.rows), ways.first, ways.last, self.archive.points)
        self._take(tours)
        if not self._device.stop.raised():
            self._along.update(ways.keys)

    def _kick_all_over(self, key: int) -> None:
        """Kick the best tours at hand of weights all over the front, every second time with a stretch of them shuffled.

        Tours that kicks still shorten are shortened far more without.
        """
        p, n = self._parameters, self.instance.n
        sums = spread(self.archive, self._n_spread, p.spread_of(n))
        tours = self._tours(sums.rows)
        if self._n_spread // p.spread_of(n) % 2:
            tours = shuffled(tours, _SHUFFLED, generator(key, 2))
        self._take(self._device.descend(tours, sums.weights, _AGAIN * p.kicks_of(n), key))
        self._n_spread += len(sums.rows)

    def _assemble(self, key: int) -> None:
        """Assemble edges of tours of the archive, each with one near by or farther, those the most often next to it.

        Of many cities only those of members: tours that they dominate would take the places of better ones.
        """
        archive, kept = self.archive, self.archive.front
        if self._few:
            kept = np.flatnonzero(archive.kept())
            kept = kept[np.lexsort(archive.lengths[kept].T[::-1])]
        times = _PAIRS if self._few or self._side_by_side else _PAIRS_OF_MANY
        i, j = drawn_couples(len(kept), times * self._looks, generator(key, 3))
        weights, _ = self._slopes(archive.lengths[kept[i]])
        self._take_assembled(kept[i], kept[j], weights, key)

    def _assemble_corners(self, pairs: Pairs, key: int) -> None:
        """Assemble edges of corners, each pair both ways."""
        rows, others = np.append(pairs.rows, pairs.others), np.append(pairs.others, pairs.rows)
        self._take_assembled(rows, others, np.tile(pairs.weights, (2, 1)), key)
        if not self._device.stop.raised():
            self._along.update(pairs.keys)

    def _take_assembled(
        self, rows: NDArray[np.intp], others: NDArray[np.intp], weights: NDArray[np.float64], key: int
    ) -> None:
        couples = Couples(self._tours(rows), self._tours(others), self.archive.lengths[rows], weights)
        most = _RANK_SIDE_BY_SIDE if self._side_by_side else _RANK_OF_ASSEMBLED
        self._take(*assembled(self.instance, couples, self._front(most), key, self._device.stop))

    def _front(self, rank: int) -> Front:
        """The front, and how many of its members may dominate a tour that counts as new to it."""
        archive = self.archive
        points = archive.points if self.instance.k == 2 else archive.lengths
        return Front(points, archive.tree, rank, archive.seen.slots)

    def _tours(self, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        return self.archive.tours[rows].astype(np.int32)

    def _take(self, tours: NDArray[np.int32], lengths: NDArray[np.float64] | None = None) -> None:
        """Offer tours to the archive."""
        exact = self.instance.lengths(tours) if lengths is None or not self.instance.integral else lengths
        self.joined = self.archive.add(tours, exact)
        self.n_tours += len(tours)

    def _solve_single_objectives(self, key: int) -> None:
        kicks = _FIRST_KICKS * self._parameters.kicks_of(self.instance.n)
        starts = self.instance.starts
        if len(self.archive.front):
            starts = self._tours(self.archive.best())
        self._take(self._device.descend(starts, single_objective_weights(self.instance.k), kicks, key))
        if not self._device.stop.raised():  # else these are to be solved yet
            self.n_sums += len(starts)

    def _solve(self, sums: Sums, key: int) -> None:
        kicks = self._parameters.kicks_of(self.instance.n)
        self._take(self._device.descend(self._tours(sums.rows), sums.weights, kicks, key))
        if not self._device.stop.raised():
            self.n_sums += len(sums.rows)
            self._solved.update(sums.keys)

    def _unsolved_sums(self) -> Sums:
        most, directions = self._sums, self._parameters.directions
        if directions is not None:  # all of them, whatever others a run that this one goes on from has solved
            return direction_sums(self.archive, directions, self._solved, most, self._part)
        most = min(most, max(0, self._parameters.sums_of(self.instance.n) - self.n_sums))
        return dichotomic_sums(self.archive, self._solved, most, self._part)

    # ---- what members lead to

    def _next(self, key: int) -> tuple[int, NDArray[np.intp]]:
        """Number of the first stage that leaves members to look at, and some of them.

        Few of them do not fill a device that looks at many side by side: it goes on to the farthest stage that has
        begun. The chains of a stage are among those of the next.
        """
        archive, most = self.archive, self._looks
        rank, looked = archive.rank[: archive.count], archive.looked[: archive.count]
        chosen = np.empty(0, np.intp)
        for stage, (_, dominated, _) in enumerate(self._stages):
            rows = np.flatnonzero((rank <= dominated) & (looked <= stage))
            rows = rows[self._part.has(archive.lengths[rows])]
            if len(chosen):
                rows = np.setdiff1d(rows, chosen, assume_unique=True)
            some = generator(key, 0).permutation(rows)[: most - len(chosen)]
            chosen = np.sort(np.concatenate([chosen, some]))
            filled = len(chosen) == most or not self._side_by_side
            if len(chosen) and (filled or stage >= self._stage):
                return stage, chosen
        return 0, chosen

    def _look(self, stage: int, rows: NDArray[np.intp], key: int) -> None:
        archive, device = self.archive, self._device
        if stage > self._stage:
            self._stage = stage
            if stage > 0:
                self._listed = edges_of(archive.tours[archive.front], not self.instance.symmetric)
                device.use(self._listed)
        lengths = archive.lengths[rows]
        weights, slack = self._slopes(lengths)
        slack *= self._stages[stage].slack
        if self.instance.k > 2:
            slack *= 2.0**stage  # nobody knows how wide the gaps are
        begin = generator(key, 1).integers(0, self.instance.n, len(rows))
        exchanges = np.full(len(rows), self._stages[stage].exchanges)
        members = Members(self._tours(rows), lengths, weights, slack, exchanges, begin)
        children = device.look(members, self._front(self._stages[stage].rank))
        worth = np.flatnonzero(archive.worth(children.lengths, device.stop.ended))
        if not device.stop.raised():
            archive.looked[rows] = stage + 1
        children = Children(
            children.owner[worth], children.exchanges[worth], children.chain[worth], children.lengths[worth]
        )
        self._take_children(members, children, stage)

    def _take_children(self, members: Members, children: Children, stage: int) -> None:
        """Offer children to the archive, so many at once that time may end between; in the order of members."""
        archive, joined = self.archive, []
        at_once = max(1, min(_MOST_TAKEN, _MOST_CITIES_TAKEN // self.instance.n))
        for first in range(0, max(1, len(children.owner)), at_once):
            if first > 0 and self._device.stop.ended():
                left = np.unique(children.owner[first:])
                archive.looked[archive.rows_of(members.lengths[left])] = stage  # once more, then
                break
            part = Children._make(array[first : first + at_once] for array in children)
            self._take(self._device.follow(members, part), part.lengths)
            joined.append(archive.lengths[self.joined])
        if len(joined) > 1:
            self.joined = archive.rows_of(np.concatenate(joined))

    def _slopes(self, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return slopes(self.archive, self._parameters.directions, points)

    def _kick_members(self, key: int) -> None:
        """Kick some members of the front under its slope there; of few cities with a stretch of them shuffled first."""
        if not self._parameters.dives:
            self._take(np.empty((0, self.instance.n), np.int32))
            return
        front, draw = self.archive.front, generator(key, 2)
        most = self._looks if self._side_by_side else max(1, self._looks // _KICKED)
        rows = front[np.sort(draw.permutation(len(front))[:most])]
        weights, _ = self._slopes(self.archive.lengths[rows])
        tours = self._tours(rows)
        if self._few:
            tours = shuffled(tours, _SHUFFLED, draw)
        self._take(self._device.descend(tours, weights, _KICKS_OF_MEMBERS, key))

    # ---- what else an engine does

    def accept(self, tours: ArrayLike) -> None:
        """Take in tours (m, n) from outside. Raises ValueError unless rows are permutations of 0 .. n-1."""
        given = checks.permutations("tours", tours, self.instance.n).astype(np.int32)
        lengths = self.instance.lengths(given)
        self.archive.add(given, lengths)

    def divide(self, part: int, parts: int) -> None:
        """Leave to other searches what is not in ``part`` in [0, parts) from now on.

        That is which tours are looked at; weighted sums of the part come before others.
        """
        self._part = Part(part, parts)

    def front(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Tours (f, n) of the front, and their lengths (f, k), in order of the first objective."""
        rows = self.archive.members()
        return self._tours(rows), self.archive.lengths[rows]

    def stop_at(self, moment: float | None) -> None:
        """End the calls that follow soon after ``time.monotonic()`` shows ``moment``, see ``Stoppable``."""
        self._device.stop.until = moment

    def export_state(self) -> State:
        """Copies of all that the next generation depends on."""
        return {
            **archive_state(self.archive),
            "front_sums": keys_state(sorted(self._solved)),
            "front_ways": keys_state(sorted(self._along)),
            "front_candidates": self._listed.copy(),
            "front_numbers": np.array(
                [self._stage, self.n_tours, self.n_sums, self._n_spread, *self._pays.waits]
            ),
            "front_gains": self._pays.gains.copy(),
        }

    def import_state(self, state: State) -> None:
        """Go on from an exported state. Raises ValueError, before anything changes, for one of another problem."""
        n, k, stages = self.instance.n, self.instance.k, len(self._stages)
        along = stored_keys(state, "front_ways", 2 * k)
        listed = stored_candidates(state, n)
        numbers = stored_integers(state, "front_numbers", (4 + KINDS,), -1, 2**62, np.int64)
        gains = stored_numbers(state, "front_gains", (KINDS,))
        empty = Archive(n, k, self.instance.unit, self._parameters.size)
        archive = restored_archive(state, empty, stages)
        solved = stored_sums(state, k, self._parameters.directions is not None)
        if numbers[2] > 0 and not len(archive.front):
            raise ValueError("state['archive_tours'] must have a tour of the front where sums were solved")
        self.archive, self._solved, self._along = archive, set(solved), set(along)
        self._stage, self.n_tours, self.n_sums = int(min(numbers[0], stages - 1)), *map(int, numbers[1:3])
        self._n_spread = max(0, int(numbers[3]))
        self._pays.waits[:], self._pays.gains[:] = numbers[4:], gains
        self._listed = listed
        self._device.use(listed)
        self.joined = np.empty(0, np.intp)
