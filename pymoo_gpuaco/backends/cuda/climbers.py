"""Hill climbers on a CUDA device: one block per climber; their state is on the device between calls."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends.cuda.device import Device, DeviceLimits, Part, Source, round_up, words
from pymoo_gpuaco.backends.cuda.instance import Cities, uses_table
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.parameters import ClimberParameters
from pymoo_gpuaco.problems.metrics import EARTH_DIAMETER_KM, Metric
from pymoo_gpuaco.runtime.state import State, stored, stored_integers, stored_numbers, stored_tours
from pymoo_gpuaco.runtime.stop import StoppableEngine

ROWS, TILED_ROWS, SPANS = 0, 1, 2  # SCAN in climber_scan.cuh
_SCAN = {"intra": ROWS, "tiled": TILED_ROWS, "tuned": SPANS, "auto": SPANS}
TILE = 1024  # tour positions in a shared tile of TILED_ROWS
SPANS_PER_THREAD = 7
FEWEST_CITIES_FOR_SPANS = 2 * SPANS_PER_THREAD + 2
# Threads per multiprocessor by SCAN, limited by registers: scans by spans need a hundred per thread, by rows 64.
THREADS = (1024, 1024, 640)
# Block sizes whose warps are distributed evenly over the four schedulers of a multiprocessor.
BLOCK_SIZES = (64, 128, 256, 384, 512, 640)
MOST_BLOCKS = 32  # maximum blocks per multiprocessor
CONTROL_BYTES = 64  # sizeof(Control) of climber_scan.cuh
LONGEST_TILE = 896  # maximum rows of a tile of the scan by spans
# Pairs that all climbers evaluate in one call: a tenth of a second on a large device. A climber's share is at most
# 1/128, so that few climbers do not prolong a call.
PAIRS_PER_CALL = 1 << 38
FEWEST_SHARES = 128
PAIRS_PER_PART = 1 << 30  # a longer scan is divided into parts
# Costs in evaluated pairs: fixed cost of a part, cost of a restart per city; cost of a pair with a table or GEO.
SCAN_COST, RESTART_COST = 1 << 15, 1 << 8
TABLE_COST, GEO_COST = 8, 64
COST_UNIT = 1 << 10

_ROUNDED = (Metric.EUC, Metric.CEIL, Metric.ATT, Metric.MAN, Metric.MAX)
LONGEST_IN_UNITS = 1 << 22  # distances below it allow integer arithmetic

START_AGAIN = -1
_LAST_RESTART = 2**62
# keys of hill_climbing.cu: NONE, mask of the position
_NO_MOVE, _PLACE = np.uint64(2**64 - 1), np.uint64(2**32 - 1)
# arrays of the state, in the order of the kernel's parameters; the last three only if the tours are in global memory
_STATE = (
    "tours", "restarts", "part_numbers", "gains", "moves", "lengths", "best_tours", "best_lengths", "counts", "places",
    "keys", "mates",
)  # fmt: skip


@dataclass(frozen=True)
class ClimberLayout:
    """Compilation and launch of climbers on one device; letters: m climbers, n cities."""

    n: int
    scan: int
    batch: bool
    units: bool  # integer arithmetic
    error: float  # bound of the error of search values
    place_bytes: int
    part_rows: int  # rows of a part of a scan, after which a call may stop
    part_cost: int  # in units of COST_UNIT pairs
    restart_cost: int  # in units of COST_UNIT pairs
    resident: bool = False  # tours are in shared memory
    threads: int = 0  # per block
    blocks: int = 1  # per multiprocessor
    extra: int = 0  # places repeated after the last
    groups: int = 0
    segments: int = 0
    rows: int = 0
    shared_bytes: int = 0

    @property
    def parts(self) -> int:
        """Number of parts of a scan."""
        return -(-self.n // self.part_rows)

    @property
    def climber_bytes(self) -> int:
        """Device memory of one climber."""
        return sum(self.arrays(1).values())

    def arrays(self, m: int) -> dict[str, int]:
        """Return the bytes of the state arrays, see hill_climbing.cu."""
        n = self.n
        needed = {
            "tours": 4 * m * n,
            "restarts": 8 * m,
            "part_numbers": 4 * m,
            "gains": 8 * m,
            "moves": 8 * m,
            "lengths": 8 * m,
            "best_tours": 4 * m * n,
            "best_lengths": 8 * m,
            "counts": 16 * m,
        }
        if not self.resident:
            needed["places"] = self.place_bytes * m * n
            if self.batch:
                needed["keys"] = 8 * m * n
                needed["mates"] = 8 * m * n
        return needed

    def budget(self, m: int, pairs: int) -> int:
        """Return the budget of each of m climbers in a call of ``pairs`` pairs, in units of COST_UNIT pairs."""
        return max(1, pairs // max(m, FEWEST_SHARES) // COST_UNIT)


def make_layout(
    instance: ListedInstance, parameters: ClimberParameters, limits: DeviceLimits
) -> ClimberLayout:
    """Plan the compilation and the launch of the kernel."""
    n = instance.n
    scan = _SCAN[parameters.kernel] if n >= FEWEST_CITIES_FOR_SPANS else ROWS
    units, error = arithmetic(instance)
    by_number = instance.metric == Metric.EXPLICIT or instance.metric == Metric.GEO
    pairs = (n - 1) * (n - 2) // 2
    price = TABLE_COST if uses_table(instance) else GEO_COST if instance.metric == Metric.GEO else 1
    part_rows = -(-n // max(1, -(-pairs * price // PAIRS_PER_PART)))
    base = ClimberLayout(
        n=n,
        scan=scan,
        batch=parameters.moves == "batch" and scan == SPANS,
        units=units,
        error=error,
        place_bytes=12 if by_number else 20 if instance.coords[:, 2].any() else 16,
        part_rows=part_rows,
        part_cost=max(1, (pairs * price * part_rows // n + SCAN_COST) // COST_UNIT),
        restart_cost=max(1, n * RESTART_COST // COST_UNIT),
    )
    if scan == SPANS:
        return resident_layout(base, limits) or staged_layout(base, limits)
    threads = min(THREADS[scan], -(-max(n - 2, 1) // 32) * 32)
    tile = (TILE + 1) * base.place_bytes if scan == TILED_ROWS else 0
    return replace(
        base,
        threads=threads,
        blocks=min(MOST_BLOCKS, THREADS[scan] // threads),
        shared_bytes=CONTROL_BYTES + 8 * threads + tile,
    )


def resident_layout(base: ClimberLayout, limits: DeviceLimits) -> ClimberLayout | None:
    """Return the fastest layout with tours in shared memory by the model `steps_per_cycle`, or None."""
    n, groups = base.n, _groups(base)
    extra = n // 2 + SPANS_PER_THREAD + 8
    tour = base.place_bytes * (n + extra) + (4 + 16 * base.batch) * n
    best = (-math.inf, base)
    for threads in BLOCK_SIZES:
        shared = CONTROL_BYTES + 8 * threads + tour
        if shared > limits.shared_bytes:
            continue
        # CUDA reserves 1 KiB per block
        blocks = min(THREADS[SPANS] // threads, (limits.shared_bytes + 1024) // (shared + 1024), MOST_BLOCKS)
        for segments in range(1, n // SPANS_PER_THREAD + 1):
            rows = _rows(n, segments)
            each = -(-groups * segments // threads)
            if segments > 1 and each * threads > 4 * groups * segments:
                continue
            rate = steps_per_cycle(each * (rows + 2) * SPANS_PER_THREAD, threads, blocks)
            if rate > best[0]:
                best = rate, _shape(base, threads, blocks, groups, segments, rows, shared)
    return None if best[1] is base else replace(best[1], resident=True, extra=extra)


def _groups(base: ClimberLayout) -> int:
    """Return the number of groups of spans; with batches all lanes of a warp evaluate the same row."""
    groups = -(-(base.n // 2 - 1) // SPANS_PER_THREAD)
    return round_up(groups, 32) if base.batch else groups


def _shape(
    base: ClimberLayout, threads: int, blocks: int, groups: int, segments: int, rows: int, shared: int
) -> ClimberLayout:
    return replace(
        base, threads=threads, blocks=blocks, groups=groups, segments=segments, rows=rows, shared_bytes=shared
    )


def _rows(places: int, segments: int) -> int:
    """Return the rows of a unit of work, a multiple of SPANS_PER_THREAD."""
    return math.ceil(places / segments / SPANS_PER_THREAD) * SPANS_PER_THREAD


def steps_per_cycle(pairs: int, threads: int, blocks: int) -> float:
    """Return the steps per cycle of all climbers of a multiprocessor, with ``pairs`` pairs per thread and step.

    A pair takes 8 instructions, with a latency of 30 cycles; a step takes 400 more instructions, and 3,000 cycles of
    waiting at barriers and for exact distances. A multiprocessor issues 4 warp instructions per cycle.
    """
    issue = threads / 32 / 4 * (8 * pairs + 400)
    return blocks / max(blocks * issue, 30 * pairs + 3000)


def staged_layout(base: ClimberLayout, limits: DeviceLimits) -> ClimberLayout:
    """Return the most efficient layout with tours in global memory and tiles in shared memory."""
    groups, places = _groups(base), base.part_rows
    best = (-math.inf, base)  # the smallest tile takes 20 KB
    for threads in (128, 256):
        for segments in range(-(-places // LONGEST_TILE), -(-places // (LONGEST_TILE // 4)) + 1):
            rows = _rows(places, segments)
            tile = base.place_bytes * (2 * rows + 1 + SPANS_PER_THREAD * threads)
            shared = CONTROL_BYTES + 8 * threads + tile
            if shared > limits.shared_bytes:
                continue
            blocks = min(THREADS[SPANS] // threads, (limits.shared_bytes + 1024) // (shared + 1024))
            evaluated = -(-groups // threads) * threads * SPANS_PER_THREAD * segments * (rows + 8)
            rate = (base.n // 2 - 1) * places / evaluated * min(1.0, blocks * threads / THREADS[SPANS])
            if rate > best[0]:
                best = rate, _shape(base, threads, blocks, groups, segments, rows, shared)
    return best[1]


def arithmetic(instance: ListedInstance) -> tuple[bool, float]:
    """Return True if the search uses integer arithmetic, and the error bound of its values.

    Floats have 24 bits. The error of an unrounded distance is at most 2**-20 of the largest distance (rounded
    coordinates, their difference, squares, root). That of a rounded distance is one unit larger. A move has two new
    distances; sums with the tour's edges have errors of the same size.
    """
    metric, coords = instance.metric, instance.coords
    if metric in (Metric.EXPLICIT, Metric.GEO):
        longest = float(instance.matrix.max()) if metric == Metric.EXPLICIT else 20_100.0
        exact = instance.integral and longest < LONGEST_IN_UNITS  # floats hold sums of four such numbers
        return False, 0.0 if exact else 2.0**-18 * longest
    sides = coords.max(axis=0) - coords.min(axis=0)
    if metric == Metric.MAN:
        longest = float(sides.sum())
    elif metric == Metric.MAX:
        longest = float(sides.max())
    else:
        longest = float(np.sqrt((sides**2).sum()))
    if metric == Metric.HAVERSINE:
        return False, _error_of_arcs(longest)
    if metric not in _ROUNDED:
        return False, 2.0**-18 * longest
    if longest >= LONGEST_IN_UNITS:
        return False, 2.0**-18 * longest + 2.0 * (1 + math.floor(2.0**-20 * longest))
    if metric in (Metric.MAN, Metric.MAX) and bool((coords == np.floor(coords)).all()):
        return True, 0.0
    return True, 2.0 * (1 + math.floor(2.0**-20 * longest))


def _error_of_arcs(longest_chord: float) -> float:
    """Return the error bound of four arcs in floats: the derivative of an arc increases with its chord."""
    chord = min(1.0, longest_chord / EARTH_DIAMETER_KM * (1.0 + 2.0**-19))
    grows = math.asin(chord) - math.asin(chord - 2.0**-19 * chord)
    return 4.0 * EARTH_DIAMETER_KM * (grows + 2.0**-20 * math.asin(chord))


class CudaClimbers(StoppableEngine, Part):
    """``ClimberEngine`` and ``Stoppable`` on one CUDA device.

    Parameters
    ----------
    instance : the problem, symmetric.
    parameters : validated; ``n_climbers=None``: the number that can be resident, in at most a quarter of the device
        memory.
    device : index of the CUDA device.

    Errors are those of ``Device``, and ValueError for an asymmetric instance: reversing a path changes its length.
    """

    kind: str = "cuda"

    def __init__(self, instance: ListedInstance, parameters: ClimberParameters, device: int = 0) -> None:
        parameters.check_for(instance.symmetric)
        self.instance = instance
        self.device = Device(device)
        self.stop = self.device.stop
        limits = self.device.limits
        self.plan = plan = make_layout(instance, parameters, limits)
        with self.device.working():
            memory = int(self.device.cuda.mem_get_info()[1])
        self.n_climbers = m = parameters.n_climbers or max(
            1, min(plan.blocks * limits.multiprocessors, memory // 4 // plan.climber_bytes)
        )
        self._finished = 0
        self._best_lengths = np.full(m, np.inf)
        self._took = 0.0  # seconds per pair in the last call
        n = plan.n
        # name in a state -> name on the device, shape and type
        self._exported: dict[str, tuple[str, tuple[int, ...], type]] = {
            "tours": ("tours", (m, n), np.int32),
            "lengths": ("lengths", (m,), np.float64),
            "restart": ("restarts", (m,), np.int64),
            "part": ("part_numbers", (m,), np.int32),
            "gain": ("gains", (m,), np.float64),
            "move": ("moves", (m, 2), np.int32),
            "best_tours": ("best_tours", (m, n), np.int32),
            "best_lengths": ("best_lengths", (m,), np.float64),
        }
        # an unfinished scan has stored the best moves of positions
        self._stores_moves = plan.batch and plan.parts > 1
        if self._stores_moves:
            self._exported["keys"] = ("keys", (m, n), np.uint64)
        self._cities = cities = Cities(self.device, instance, listed=False)
        definitions = {
            **cities.definitions,
            "UNITS": int(plan.units),
            "SCAN": plan.scan,
            "BATCH": int(plan.batch),
            "RESIDENT": int(plan.resident),
            "SPANS": SPANS_PER_THREAD,
            "TILE": TILE,
            "THREADS": THREADS[plan.scan],
            "PLACE_BYTES": plan.place_bytes,
        }
        self.sources = [
            Source("climbers/hill_climbing.cu", definitions, ["climb"], {"climb": plan.shared_bytes})
        ]
        self.needed = plan.arrays(m)
        self.device.set_up([cities, self], "fewer climbers (n_climbers) need less")

    def prepare(self) -> None:
        """Initialise the state; climbers start in the first call."""
        device, m = self.device, self.n_climbers
        device.write("restarts", np.arange(m, dtype=np.int64) - m)
        device.write("part_numbers", np.full(m, START_AGAIN, np.int32))
        device.write("best_lengths", self._best_lengths)

    # ---- ClimberEngine

    def climb(self, key: int, pairs: int = PAIRS_PER_CALL) -> int:
        """Evaluate about ``pairs`` pairs in all; return the number of finished climbs.

        If the remaining time is too short at the rate of the last call, it evaluates fewer, but at least a part of a
        scan.
        """
        began = time.monotonic()
        if self.device.stop.until is not None:
            left = max(0.0, self.device.stop.until - began)
            if left < self._took * pairs or left == 0.0:
                pairs = int(left / self._took) if self._took else 0
        with self.device.working():
            self._launch(key, pairs)
            self.device.read(self._best_lengths, "best_lengths")
            before, self._finished = self._finished, self._counted()[0]
        if pairs:
            self._took = (time.monotonic() - began) / pairs
        return self._finished - before

    def _launch(self, key: int, pairs: int) -> None:
        """Launch all climbers with a budget of ``pairs`` pairs in all."""
        plan, m = self.plan, self.n_climbers
        error = np.nextafter(np.float32(plan.error), np.float32(np.inf)) if plan.error else np.float32(0.0)
        scan = (error, plan.extra, plan.groups, plan.segments, plan.rows, plan.part_rows)
        costs = (plan.budget(m, pairs), plan.part_cost, plan.restart_cost)
        state = map(self.device.arrays.optional, _STATE)
        arguments = (*self._cities.arguments(), *words(key), m, *scan, *costs, *state)
        self.device.launch("climb", m, plan.threads, *arguments)

    def _counted(self) -> list[int]:
        """Return the numbers of finished climbs and completed scans."""
        counts = np.empty((self.n_climbers, 2), np.uint64)
        self.device.read(counts, "counts")
        return [int(count) for count in counts.sum(axis=0)]

    @property
    def scans(self) -> int:
        """Number of completed scans of all (n-1)(n-2)/2 moves since the engine was created."""
        with self.device.working():
            return self._counted()[1]

    def start_from(self, tours: ArrayLike) -> None:
        """Start the first climbers at the given tours (rows of n) instead of random ones."""
        given = checks.permutations("tours", tours, self.instance.n)[: self.n_climbers].astype(np.int32)
        state, few = self.export_state(), len(given)
        state["tours"][:few] = given
        state["lengths"][:few] = [self.instance.tour_length(tour) for tour in given]
        state["restart"][:few] = np.arange(few)
        state["row"][:few] = state["part"][:few] = 0
        state["gain"][:few] = 0.0
        self.import_state(state)

    def best(self) -> tuple[NDArray[np.int32], float]:
        """Return the shortest tour of the last call of ``climb`` and its exact length."""
        climber, n = int(self._best_lengths.argmin()), self.instance.n
        tour = np.empty(n, np.int32)
        with self.device.working():
            self.device.read(tour, "best_tours", 4 * n * climber)
        return tour, float(self._best_lengths[climber])

    def lengths(self) -> NDArray[np.float64]:
        """Return the exact lengths (n_climbers,) of the current tours."""
        lengths = np.empty(self.n_climbers)
        with self.device.working():
            self.device.read(lengths, "lengths")
        return lengths

    def export_state(self) -> State:
        """Return the state of all climbs in the format of the CPU engine, with additional arrays of unfinished scans.

        The CPU engine restarts unfinished scans.
        """
        state: State = {}
        with self.device.working():
            for name, (array, shape, kind) in self._exported.items():
                state[name] = np.empty(shape, kind)
                self.device.read(state[name], array)
        row = np.where(state["part"] == START_AGAIN, START_AGAIN, 0).astype(np.int64)
        return {**state, "row": row, "best_lengths": self._best_lengths.copy()}

    def import_state(self, state: State) -> None:
        """Continue the climbs of a state of this engine or the CPU engine, whose unfinished scans are restarted.

        Raises ValueError, before anything changes, for a state of another instance or number of climbers.
        """
        m, n = self.n_climbers, self.plan.n
        own: dict[str, NDArray[Any]] = {
            "tours": stored_tours(state, "tours", m, n),
            "lengths": stored_numbers(state, "lengths", (m,)),
            "restart": stored_integers(state, "restart", (m,), -m, _LAST_RESTART, np.int64),
            "best_tours": stored_tours(state, "best_tours", m, n),
            "best_lengths": stored_numbers(state, "best_lengths", (m,), infinity=True),
        }
        if "part" in state and ("keys" in state or not self._stores_moves):
            own["part"] = stored_integers(state, "part", (m,), START_AGAIN, self.plan.parts - 1)
            own["gain"] = stored_numbers(state, "gain", (m,), low=-np.inf)
            own["move"] = stored_integers(state, "move", (m, 2), 0, n - 1)
            if self._stores_moves:
                own["keys"] = keys = np.ascontiguousarray(stored(state, "keys", (m, n)), np.uint64)
                checks.integers_in("state['keys'] of places", keys[keys != _NO_MOVE] & _PLACE, 0, n)
        else:
            row = stored_integers(state, "row", (m,), START_AGAIN, n, np.int64)
            own["part"] = np.where(row == START_AGAIN, START_AGAIN, 0).astype(np.int32)
            own["gain"] = np.zeros(m)
            own["move"] = np.zeros((m, 2), np.int32)
        with self.device.working():
            for name, array in own.items():
                self.device.write(self._exported[name][0], array)
        self._best_lengths = np.array(own["best_lengths"], np.float64)
