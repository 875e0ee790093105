"""Two-phase Pareto local search on any device.

T. Lust and J. Teghem, "Two-phase Pareto local search for the biobjective traveling salesman problem", Journal of
Heuristics 16 (2010): supported tours by weighted sums, then Pareto local search from all of them. Here members are
explored in stages: chains of three exchanges for all members before chains of four for any. The last stages also
explore tours that few members dominate, because much of a front lies more than one move from its other members. Fully
explored members are kicked.

With two objectives, kicks are also spread over the front; see `OperatorSelection`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.pareto.archive import (
    WHOLE,
    Archive,
    FrontShare,
    archive_state,
    restored_archive,
    stored_rows,
)
from pymoo_gpuaco.pareto.assembly import ParentPairs, assemble_pairs, draw_pairs
from pymoo_gpuaco.pareto.device import Children, Front, FrontDevice, Members
from pymoo_gpuaco.pareto.front_2d import hypervolume
from pymoo_gpuaco.pareto.instance import MOST_FOR_ALL_TOURS, FrontInstance, all_tours, edges_of, shuffled
from pymoo_gpuaco.pareto.parameters import SUMS, FrontParameters
from pymoo_gpuaco.pareto.weights import (
    Pairs,
    Sums,
    corner_pairs,
    dichotomic_sums,
    direction_sums,
    single_objective_weights,
    slopes,
    spread,
)
from pymoo_gpuaco.runtime.philox import generator
from pymoo_gpuaco.runtime.state import State, stored_integers, stored_numbers
from pymoo_gpuaco.runtime.stop import StoppableEngine

_FIRST_KICKS = 3  # factor on the kicks for single objectives, with whose tours all others begin
_KICKS_OF_MEMBERS = 20
_SHUFFLED = 50  # consecutive cities of a tour to shuffle before it is kicked
_MOST_ADDED = 1 << 14  # children that the archive adds at once: tenths of a second
_MOST_CITIES_ADDED = 1 << 24  # limit of their cities in total
_FEW_CITIES = 150  # with at most these, sums find most supported tours, and operators take turns
# Pairs in a generation per explored member, as pairs are faster; with many cities kicks are slower than exploration.
_PAIRS, _PAIRS_OF_MANY = 2, 8
# Maximum members that dominate an assembled tour. Such tours help if their exploration costs no more than kicks. On
# parallel devices kicks cost less.
_RANK_OF_ASSEMBLED, _RANK_IN_PARALLEL = 2, 0
_AGAIN = 4  # factor on the kicks for the first tour of a weighted sum
_KICKED = 4  # without a parallel device, 1 / _KICKED of the number of explored members is kicked

EXPLORE, KICKS, PAIRS = range(3)  # of equal credit, the first is chosen
KINDS = 3
_EVERY = 8  # generations after which an operator runs regardless of its credit
# The same for an operator without credit. Pairs come sooner: they are drawn at random and find other tours.
_EVERY_IDLE = np.array([64, 64, 8])


class OperatorSelection:
    """Credit and waiting time of each operator.

    With many cities no operator ever finishes, and the gain of each falls at a different rate; the last gain decides. A
    generation of each operator takes about as long, so no clock is needed.

    Attributes
    ----------
    gains : (KINDS,) hypervolume gain of the last generation of each operator, as a share of the box around the front.
    waits : (KINDS,) generations since then.
    """

    def __init__(self) -> None:
        self.gains = np.zeros(KINDS)
        self.waits = _EVERY_IDLE.copy()

    def choose(self, able: NDArray[np.bool_]) -> int:
        """Return the operator, of those ``able``, that has waited too long, or else the one with the most credit."""
        overdue = np.where(able, self.waits - np.where(self.gains > 0.0, _EVERY, _EVERY_IDLE), -1)
        if overdue.max() >= 0:
            return int(overdue.argmax())
        return int(np.where(able, self.gains, -1.0).argmax())

    def turn(self, able: NDArray[np.bool_]) -> int:
        """Return the operator, of those ``able``, that has waited longest."""
        return int(np.where(able, self.waits, -1).argmax())

    def note(self, kind: int, before: NDArray[np.float64], after: NDArray[np.float64]) -> None:
        """Credit an operator for a generation with the front (f, 2) ``before`` and ``after`` it."""
        worst = np.maximum(before.max(axis=0), after.max(axis=0))
        box = float(np.prod(worst - after.min(axis=0)))
        gain = hypervolume(after, worst) - hypervolume(before, worst)
        self.gains[kind] = max(0.0, gain) / box if box > 0.0 else 0.0
        self.waits += 1
        self.waits[kind] = 0


class FrontSearch(StoppableEngine):
    """``FrontEngine`` on any device."""

    def __init__(self, device: FrontDevice, parameters: FrontParameters) -> None:
        self._device, self._parameters = device, parameters
        self.stop = device.stop
        self.kind: str = device.kind
        self.instance: FrontInstance = device.instance
        instance, n, k = device.instance, device.instance.n, device.instance.k
        self.archive = Archive(n, k, instance.unit, parameters.size)
        self._parallel = device.times > 1
        self._stages = parameters.stages_of(k, not instance.symmetric, self._parallel)
        self._sums = SUMS * device.times
        self._n_explored = parameters.explored_of(n, k) * device.times
        self._solved: set[bytes] = set()
        self._assembled: set[bytes] = set()  # keys of pairs of corners
        self._has_operators = k == 2
        self._has_few_cities = self._has_operators and n <= _FEW_CITIES
        self._operators = OperatorSelection()
        self._n_spread = 1  # number of spread weights used for kicks so far; number 0 is an end of the front
        self._stage = -1  # the farthest stage of any exploration
        self._candidates = instance.costs.neighbours  # candidates for exploration
        self.n_tours = 0  # built so far
        self.n_sums = 0  # weighted sums solved so far
        self._part = WHOLE

    # ---- a generation

    def search(self, key: int) -> None:
        """Run one generation; ``key`` in [0, 2**64)."""
        self.stop.reset()
        self.archive.mark()
        n = self.instance.n
        if n <= MOST_FOR_ALL_TOURS:
            directed = not self.instance.symmetric
            self._add(all_tours(n, directed) if self.n_sums == 0 else np.empty((0, n), np.int32))
            self.n_sums = max(self.n_sums, 1)
            return
        if self.n_sums == 0:
            self._solve_single_objectives(key)
            return
        stage, rows = self._next(key)
        symmetric = self.instance.symmetric
        # Sums come before exploration, and before later stages. So does the assembly of their corners: kicks miss some
        # corners, assembly finds many of them, and exploring a front without a corner is wasted.
        if self._stage < 0 or stage > 0 or not len(rows):
            sums = self._unsolved_sums()
            if len(sums.rows):
                self._solve(sums, key)
                return
            if self._has_operators and symmetric:
                corners = corner_pairs(
                    self.archive, self._assembled, self._parameters.pairs_of(n), self._part
                )
                if len(corners.rows):
                    self._assemble_corners(corners, key)
                    return
        before, kind = self.archive.points, self._kind(stage, rows)
        if kind == PAIRS:
            self._assemble(key)
        elif kind == KICKS and not self._has_few_cities:
            self._kick_all_over(key)
        elif kind == EXPLORE and len(rows):
            self._explore(stage, rows, key)
        else:
            self._kick_members(key)
        if self._has_operators:
            self._operators.note(kind, before, self.archive.points)

    def _kind(self, stage: int, rows: NDArray[np.intp]) -> int:
        """Choose the operator of the next generation; with more than two objectives, only exploration can run."""
        if not self._has_operators:
            return EXPLORE
        symmetric = self.instance.symmetric
        if not self._has_few_cities:
            # Pairs have credit from the start: they find most tours between the corners that kicks have found. But the
            # host assembles them, and a parallel device would be idle. There they run when nothing is left to explore,
            # in turns with kicks of members.
            pairs = symmetric and not (self._parallel and len(rows))
            explore = len(rows) > 0 or self._operators.waits[PAIRS] == 0 or not symmetric
            return self._operators.choose(np.array([explore, True, pairs]))
        # With few cities the sums have found all supported tours, and exploration ends: its first stage comes before
        # the other operators. Many of the missing tours lie close together and far from all others, and a kick finds
        # the first of them.
        first = stage == 0 and len(rows) > 0
        return self._operators.turn(np.array([len(rows) > 0, not first, symmetric and not first]))

    def _kick_all_over(self, key: int) -> None:
        """Kick the best tours for weights spread over the front, every second time with a shuffled stretch.

        Kicks without the shuffle shorten tours that are not yet local optima far more.
        """
        p, n = self._parameters, self.instance.n
        sums = spread(self.archive, self._n_spread, p.spread_of(n))
        tours = self._tours(sums.rows)
        if self._n_spread // p.spread_of(n) % 2:
            tours = shuffled(tours, _SHUFFLED, generator(key, 2))
        self._add(self._device.descend(tours, sums.weights, _AGAIN * p.kicks_of(n), key))
        self._n_spread += len(sums.rows)

    def _assemble(self, key: int) -> None:
        """Assemble pairs of tours of the archive; nearer tours are more likely pairs.

        With many cities only members of the front are parents, as dominated tours would replace better ones.
        """
        archive, rows = self.archive, self.archive.front
        if self._has_few_cities:
            rows = np.flatnonzero(archive.present())
            rows = rows[np.lexsort(archive.lengths[rows].T[::-1])]
        times = _PAIRS if self._has_few_cities or self._parallel else _PAIRS_OF_MANY
        i, j = draw_pairs(len(rows), times * self._n_explored, generator(key, 3))
        weights, _ = self._slopes(archive.lengths[rows[i]])
        self._add_assembled(rows[i], rows[j], weights, key)

    def _assemble_corners(self, pairs: Pairs, key: int) -> None:
        """Assemble pairs of corners, each pair in both directions."""
        rows, others = np.append(pairs.rows, pairs.others), np.append(pairs.others, pairs.rows)
        self._add_assembled(rows, others, np.tile(pairs.weights, (2, 1)), key)
        if not self.stop.is_set():
            self._assembled.update(pairs.keys)

    def _add_assembled(
        self, rows: NDArray[np.intp], others: NDArray[np.intp], weights: NDArray[np.float64], key: int
    ) -> None:
        pairs = ParentPairs(self._tours(rows), self._tours(others), self.archive.lengths[rows], weights)
        most = _RANK_IN_PARALLEL if self._parallel else _RANK_OF_ASSEMBLED
        self._add(*assemble_pairs(self.instance, pairs, self._front(most), key, self._device.stop))

    def _front(self, rank: int) -> Front:
        """Return the front, with ``rank`` as the maximum number of members that dominate a new tour."""
        archive = self.archive
        points = archive.points if self.instance.k == 2 else archive.lengths
        return Front(points, archive.tree, rank, archive.seen.slots)

    def _tours(self, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        return self.archive.tours[rows].astype(np.int32)

    def _add(self, tours: NDArray[np.int32], lengths: NDArray[np.float64] | None = None) -> None:
        """Add tours to the archive."""
        exact = self.instance.lengths(tours) if lengths is None or not self.instance.integral else lengths
        self.archive.add(tours, exact)
        self.n_tours += len(tours)

    def _solve_single_objectives(self, key: int) -> None:
        kicks = _FIRST_KICKS * self._parameters.kicks_of(self.instance.n)
        starts = self.instance.starts
        if len(self.archive.front):
            starts = self._tours(self.archive.best())
        self._add(self._device.descend(starts, single_objective_weights(self.instance.k), kicks, key))
        if not self.stop.is_set():  # else they are solved again
            self.n_sums += len(starts)

    def _solve(self, sums: Sums, key: int) -> None:
        kicks = self._parameters.kicks_of(self.instance.n)
        self._add(self._device.descend(self._tours(sums.rows), sums.weights, kicks, key))
        if not self.stop.is_set():
            self.n_sums += len(sums.rows)
            self._solved.update(sums.keys)

    def _unsolved_sums(self) -> Sums:
        most, directions = self._sums, self._parameters.directions
        if directions is not None:  # all of them, also in a run continued from other directions
            return direction_sums(self.archive, directions, self._solved, most, self._part)
        most = min(most, max(0, self._parameters.sums_of(self.instance.n) - self.n_sums))
        return dichotomic_sums(self.archive, self._solved, most, self._part)

    # ---- exploration

    def _next(self, key: int) -> tuple[int, NDArray[np.intp]]:
        """Return the first stage with members to explore, and some of them.

        A parallel device also gets members of later stages, up to the farthest one so far. The chains of a stage
        are chains of the next one.
        """
        archive, most = self.archive, self._n_explored
        rank, explored = archive.rank[: archive.count], archive.explored[: archive.count]
        chosen = np.empty(0, np.intp)
        for stage, (_, dominated, _) in enumerate(self._stages):
            rows = np.flatnonzero((rank <= dominated) & (explored <= stage))
            rows = rows[self._part.has(archive.lengths[rows])]
            if len(chosen):
                rows = np.setdiff1d(rows, chosen, assume_unique=True)
            some = generator(key, 0).permutation(rows)[: most - len(chosen)]
            chosen = np.sort(np.concatenate([chosen, some]))
            filled = len(chosen) == most or not self._parallel
            if len(chosen) and (filled or stage >= self._stage):
                return stage, chosen
        return 0, chosen

    def _explore(self, stage: int, rows: NDArray[np.intp], key: int) -> None:
        archive, device = self.archive, self._device
        if stage > self._stage:
            self._stage = stage
            if stage > 0:
                self._candidates = edges_of(archive.tours[archive.front], not self.instance.symmetric)
                device.use(self._candidates)
        lengths = archive.lengths[rows]
        weights, slack = self._slopes(lengths)
        slack *= self._stages[stage].slack
        if self.instance.k > 2:
            slack *= 2.0**stage  # the width of the gaps is unknown
        begin = generator(key, 1).integers(0, self.instance.n, len(rows))
        exchanges = np.full(len(rows), self._stages[stage].exchanges)
        members = Members(self._tours(rows), lengths, weights, slack, exchanges, begin)
        children = device.explore(members, self._front(self._stages[stage].rank))
        worth = np.flatnonzero(archive.worth(children.lengths, device.stop.ended))
        if not device.stop.is_set():
            archive.explored[rows] = stage + 1
        self._add_children(members, Children._make(array[worth] for array in children), stage, rows)

    def _add_children(self, members: Members, children: Children, stage: int, rows: NDArray[np.intp]) -> None:
        """Add children of the members in ``rows`` to the archive, in batches with checks of the deadline."""
        archive, explored = self.archive, self.archive.serial[rows]
        at_once = max(1, min(_MOST_ADDED, _MOST_CITIES_ADDED // self.instance.n))
        for first in range(0, max(1, len(children.owner)), at_once):
            if first > 0 and self.stop.ended():
                again = np.isin(archive.serial[archive.front], explored[children.owner[first:]])
                archive.explored[archive.front[again]] = stage
                break
            part = Children._make(array[first : first + at_once] for array in children)
            self._add(self._device.follow(members, part), part.lengths)

    def _slopes(self, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return slopes(self.archive, self._parameters.directions, points)

    def _kick_members(self, key: int) -> None:
        """Kick some members under the slope of the front; with few cities, shuffle a stretch of each first."""
        front, draw = self.archive.front, generator(key, 2)
        most = self._n_explored if self._parallel else max(1, self._n_explored // _KICKED)
        rows = front[np.sort(draw.permutation(len(front))[:most])]
        weights, _ = self._slopes(self.archive.lengths[rows])
        tours = self._tours(rows)
        if self._has_few_cities:
            tours = shuffled(tours, _SHUFFLED, draw)
        self._add(self._device.descend(tours, weights, _KICKS_OF_MEMBERS, key))

    # ---- engine

    def accept(self, tours: ArrayLike) -> None:
        """Add given tours (m, n). Raises ValueError unless rows are permutations of 0 .. n-1."""
        given = checks.permutations("tours", tours, self.instance.n).astype(np.int32)
        lengths = self.instance.lengths(given)
        self.archive.add(given, lengths)

    def divide(self, part: int, parts: int) -> None:
        """Search only ``part`` in [0, parts) from now on.

        The search explores only tours of its part, and solves weighted sums of the part first.
        """
        self._part = FrontShare(part, parts)

    def export_state(self) -> State:
        """Return copies of all data on which the next generation depends."""
        return {
            **archive_state(self.archive),
            "front_sums": _rows_of_keys(sorted(self._solved)),
            "front_pairs": _rows_of_keys(sorted(self._assembled)),
            "front_candidates": self._candidates.copy(),
            "front_numbers": np.array(
                [self._stage, self.n_tours, self.n_sums, self._n_spread, *self._operators.waits]
            ),
            "front_gains": self._operators.gains.copy(),
        }

    def import_state(self, state: State) -> None:
        """Continue from an exported state. Raises ValueError, before any change, for a state of another problem."""
        n, k, stages = self.instance.n, self.instance.k, len(self._stages)
        assembled = _stored_keys(state, "front_pairs", 2 * k)
        shape = np.shape(state.get("front_candidates", np.empty(0)))
        width = shape[1] if len(shape) == 2 else 1
        listed = stored_integers(state, "front_candidates", (n, width), 0, n - 1)
        numbers = stored_integers(state, "front_numbers", (4 + KINDS,), -1, 2**62, np.int64)
        gains = stored_numbers(state, "front_gains", (KINDS,))
        empty = Archive(n, k, self.instance.unit, self._parameters.size)
        archive = restored_archive(state, empty, stages)
        solved = _stored_sums(state, k, self._parameters.directions is not None)
        if numbers[2] > 0 and not len(archive.front):
            raise ValueError("state['archive_tours'] must have a tour of the front if sums were solved")
        self.archive, self._solved, self._assembled = archive, set(solved), set(assembled)
        self._stage, self.n_tours, self.n_sums = int(min(numbers[0], stages - 1)), *map(int, numbers[1:3])
        self._n_spread = max(0, int(numbers[3]))
        self._operators.waits[:], self._operators.gains[:] = numbers[4:], gains
        self._candidates = listed
        self._device.use(listed)


def _rows_of_keys(names: list[bytes]) -> NDArray[np.float64]:
    """Return byte strings of float64 as rows."""
    return np.array([np.frombuffer(name) for name in names]).reshape(len(names), -1 if names else 0)


def _stored_keys(state: State, name: str, width: int) -> list[bytes]:
    """Return the byte strings of rows from `_rows_of_keys`."""
    m = stored_rows(state, name)
    return [row.tobytes() for row in stored_numbers(state, name, (m, width if m else 0))]


def _stored_sums(state: State, k: int, by_directions: bool) -> list[bytes]:
    """Return the keys of solved weighted sums of k objectives: directions, or pairs of corners of the front."""
    width, other = (k, 2 * k) if by_directions else (2 * k, k)
    if np.shape(state.get("front_sums", ()))[1:] == (other,):
        raise ValueError(
            f"ref_dirs must {'not ' * by_directions}be given, as in the run that the state is of: it has solved "
            f"{'weighted sums that it found itself' if by_directions else 'those of its ref_dirs'}"
        )
    return _stored_keys(state, "front_sums", width)
