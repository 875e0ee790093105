"""Hill climbers on a CUDA device: one block per climber; their state is on the device between calls."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends.cuda.device import Device, DeviceLimits, KernelGroup, Source, round_up, words
from pymoo_gpuaco.backends.cuda.instance import DeviceInstance, uses_table
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.parameters import ClimberParameters
from pymoo_gpuaco.problems.metrics import EARTH_DIAMETER_KM, Metric
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.state import State, stored_integers, stored_numbers, stored_tours
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
CONTROL_BYTES = 48  # sizeof(Control) of climber_scan.cuh
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


@dataclass(frozen=True)
class ClimberLayout:
    """Compilation and launch of climbers on one device; letters: m climbers, n cities."""

    n: int
    scan: int
    units: bool  # integer arithmetic
    error: float  # bound of the error of search values
    place_bytes: int
    part_rows: int  # rows of a part of a scan, after which a call may stop
    part_cost: int  # in units of COST_UNIT pairs
    resident: bool = False  # tours are in shared memory
    threads: int = 0  # per block
    blocks: int = 1  # per multiprocessor
    groups: int = 0
    segments: int = 0
    rows: int = 0
    shared_bytes: int = 0

    def arrays(self, m: int) -> dict[str, int]:
        """Return the bytes of the state arrays, in the order of the kernel's parameters (hill_climbing.cu)."""
        n, global_tours = self.n, 0 if self.resident else m * self.n
        return {
            "tours": 4 * m * n,
            "restarts": 8 * m,
            "part_numbers": 4 * m,
            "gains": 8 * m,
            "moves": 8 * m,
            "lengths": 8 * m,
            "best_tours": 4 * m * n,
            "best_lengths": 8 * m,
            "counts": 16 * m,
            "places": self.place_bytes * global_tours,
        }


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
        units=units,
        error=error,
        place_bytes=12 if by_number else 20 if instance.coords[:, 2].any() else 16,
        part_rows=part_rows,
        part_cost=max(1, (pairs * price * part_rows // n + SCAN_COST) // COST_UNIT),
    )
    if scan == SPANS:
        return spans_layout(base, limits, True) or spans_layout(base, limits, False) or base
    threads = min(THREADS[scan], -(-max(n - 2, 1) // 32) * 32)
    tile = (TILE + 1) * base.place_bytes if scan == TILED_ROWS else 0
    return replace(
        base,
        threads=threads,
        blocks=min(MOST_BLOCKS, THREADS[scan] // threads),
        shared_bytes=CONTROL_BYTES + 8 * threads + tile,
    )


def spans_layout(base: ClimberLayout, limits: DeviceLimits, resident: bool) -> ClimberLayout | None:
    """Return the most efficient layout of scans by spans, or None if none fits.

    ``resident``: tours are in shared memory; else they are in global memory, and tiles of them in shared memory.
    """
    n, each = base.n, SPANS_PER_THREAD
    groups = -(-(n // 2 - 1) // each)
    places = n if resident else base.part_rows
    tour = base.place_bytes * (n + n // 2 + each + 8) + 4 * n  # with repeated places
    segments_of_tiles = range(-(-places // LONGEST_TILE), -(-places // (LONGEST_TILE // 4)) + 1)
    best: ClimberLayout | None = None
    highest = -math.inf
    for threads in BLOCK_SIZES if resident else (128, 256):
        for segments in range(1, n // each + 1) if resident else segments_of_tiles:
            rows = round_up(-(-places // segments), each)
            tile = base.place_bytes * (2 * rows + 1 + each * threads)
            shared = CONTROL_BYTES + 8 * threads + (tour if resident else tile)
            units = -(-groups * segments // threads)  # of a thread
            if shared > limits.shared_bytes or (resident and 1 < segments < units * threads / (4 * groups)):
                continue
            # CUDA reserves 1 KiB per block
            blocks = min(THREADS[SPANS] // threads, (limits.shared_bytes + 1024) // (shared + 1024))
            if resident:
                rate = steps_per_cycle(units * (rows + 2) * each, threads, blocks)
            else:
                evaluated = -(-groups // threads) * threads * each * segments * (rows + 8)
                rate = (n // 2 - 1) * places / evaluated * min(1.0, blocks * threads / THREADS[SPANS])
            if rate > highest:
                how = replace(base, resident=resident, threads=threads, blocks=blocks, shared_bytes=shared)
                best = replace(how, groups=groups, segments=segments, rows=rows)
                highest = rate
    return best


def steps_per_cycle(pairs: int, threads: int, blocks: int) -> float:
    """Return the steps per cycle of all climbers of a multiprocessor, with ``pairs`` pairs per thread and step.

    A pair takes 8 instructions, with a latency of 30 cycles; a step takes 400 more instructions, and 3,000 cycles of
    waiting at barriers and for exact distances. A multiprocessor issues 4 warp instructions per cycle.
    """
    issue = threads / 32 / 4 * (8 * pairs + 400)
    return blocks / max(blocks * issue, 30 * pairs + 3000)


def arithmetic(instance: ListedInstance) -> tuple[bool, float]:
    """Return True if the search uses integer arithmetic, and the error bound of its values.

    Floats have 24 bits. The error of an unrounded distance is at most 2**-20 of the largest distance (rounded
    coordinates, their difference, squares, root). That of a rounded distance is one unit larger. A move has two new
    distances; sums with the tour's edges have errors of the same size.
    """
    metric = instance.metric
    if metric in (Metric.EXPLICIT, Metric.GEO):
        return False, 2.0**-18 * (float(instance.matrix.max()) if metric == Metric.EXPLICIT else 20_100.0)
    sides = np.ptp(instance.coords, axis=0)
    longest = float(
        sides.sum() if metric == Metric.MAN else np.linalg.norm(sides)
    )  # at least the largest distance
    if metric == Metric.HAVERSINE:
        return False, _error_of_arcs(longest)
    if metric not in _ROUNDED:
        return False, 2.0**-18 * longest
    rounding = 2.0 * (1 + math.floor(2.0**-20 * longest))
    units = longest < LONGEST_IN_UNITS
    return units, rounding if units else 2.0**-18 * longest + rounding


def _error_of_arcs(longest_chord: float) -> float:
    """Return the error bound of four arcs in floats: the derivative of an arc increases with its chord."""
    chord = min(1.0, longest_chord / EARTH_DIAMETER_KM * (1.0 + 2.0**-19))
    grows = math.asin(chord) - math.asin(chord - 2.0**-19 * chord)
    return 4.0 * EARTH_DIAMETER_KM * (grows + 2.0**-20 * math.asin(chord))


class CudaClimbers(StoppableEngine, KernelGroup):
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
        climber_bytes = sum(plan.arrays(1).values())
        self.n_climbers = m = parameters.n_climbers or max(
            1, min(plan.blocks * limits.multiprocessors, memory // 4 // climber_bytes)
        )
        self._finished = 0
        self._best_lengths = np.full(m, np.inf)
        self._took = 0.0  # seconds per pair in the last call
        self._cities = cities = DeviceInstance(self.device, instance, listed=False)
        definitions = {
            **cities.definitions,
            "UNITS": int(plan.units),
            "SCAN": plan.scan,
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
        began = CLOCK.monotonic()
        if self.device.stop.until is not None:
            left = max(0.0, self.device.stop.until - began)
            if left < self._took * pairs or left == 0.0:
                pairs = int(left / self._took) if self._took else 0
        with self.device.working():
            self._launch(key, pairs)
            self.device.read(self._best_lengths, "best_lengths")
            before, self._finished = self._finished, self._counted()[0]
        if pairs:
            self._took = (CLOCK.monotonic() - began) / pairs
        return self._finished - before

    def _launch(self, key: int, pairs: int) -> None:
        """Launch all climbers with a budget of ``pairs`` pairs in all."""
        plan, m = self.plan, self.n_climbers
        error = np.nextafter(np.float32(plan.error), np.float32(np.inf))
        scan = (error, plan.groups, plan.segments, plan.rows, plan.part_rows)
        budget = max(1, pairs // max(m, FEWEST_SHARES) // COST_UNIT)
        costs = (budget, plan.part_cost, max(1, plan.n * RESTART_COST // COST_UNIT))
        state = (self.device.arrays[name] for name in plan.arrays(m))
        arguments = (*self._cities.arguments, *words(key), m, *scan, *costs, *state)
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
        state["restart"][:few], state["row"][:few] = np.arange(few), 0
        self.import_state(state)

    def best(self) -> tuple[NDArray[np.int32], float]:
        """Return the shortest tour of the last call of ``climb`` and its exact length."""
        climber, n = int(self._best_lengths.argmin()), self.instance.n
        tour = np.empty(n, np.int32)
        with self.device.working():
            self.device.read(tour, "best_tours", 4 * n * climber)
        return tour, float(self._best_lengths[climber])

    def export_state(self) -> State:
        """Return the state of all climbs in the format of the CPU engine; scans under way are to be restarted."""
        m, n = self.n_climbers, self.plan.n
        state: State = {
            "tours": np.empty((m, n), np.int32),
            "lengths": np.empty(m),
            "restarts": np.empty(m, np.int64),
            "part_numbers": np.empty(m, np.int32),
            "best_tours": np.empty((m, n), np.int32),
        }
        with self.device.working():
            for name, array in state.items():
                self.device.read(array, name)
        row = np.minimum(state.pop("part_numbers"), 0).astype(np.int64)
        state |= {"restart": state.pop("restarts"), "row": row, "best_lengths": self._best_lengths.copy()}
        return {**state, "gain": np.zeros(m), "move": np.zeros((m, 2), np.int64)}

    def import_state(self, state: State) -> None:
        """Continue the climbs of a state of this engine or the CPU engine; scans under way are restarted.

        Raises ValueError, before anything changes, for a state of another instance or number of climbers.
        """
        m, n = self.n_climbers, self.plan.n
        row = stored_integers(state, "row", (m,), START_AGAIN, max(0, n - 3), np.int64)
        stored_integers(state, "move", (m, 2), 0, n - 1)  # of the scan, which is restarted: only validated
        best_lengths = stored_numbers(state, "best_lengths", (m,), infinity=True)
        own: dict[str, NDArray[Any]] = {
            "tours": stored_tours(state, "tours", m, n, none=row == START_AGAIN),
            "lengths": stored_numbers(state, "lengths", (m,)),
            "restarts": stored_integers(state, "restart", (m,), -m, _LAST_RESTART, np.int64),
            "part_numbers": np.minimum(row, 0).astype(np.int32),
            "gains": np.zeros(m),
            "best_tours": stored_tours(state, "best_tours", m, n, none=np.isinf(best_lengths)),
            "best_lengths": best_lengths,
        }
        with self.device.working():
            for name, array in own.items():
                self.device.write(name, array)
        self._best_lengths = best_lengths.copy()
