"""Hill climbers on a CUDA device: a climber a block; their state stays on the device between calls."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends.cuda.climbers import layout as climber_layout
from pymoo_gpuaco.backends.cuda.device import Device, Source, words
from pymoo_gpuaco.backends.cuda.instance.cities import Cities
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.parameters import ClimberParameters
from pymoo_gpuaco.runtime.state import State, stored, stored_integers, stored_numbers, stored_tours

START_AGAIN = -1
_LAST_RESTART = 2**62
_NO_MOVE, _PLACE = np.uint64(2**64 - 1), np.uint64(2**32 - 1)  # of a key, climber_scan.cuh
_ADVICE = "fewer climbers (n_climbers) need less"


class CudaClimbers:
    """``ClimberEngine`` and ``Stoppable`` on one CUDA device.

    Parameters
    ----------
    instance : the problem, symmetric.
    parameters : validated; ``n_climbers=None``: as many as can be resident, in at most a quarter of the device
        memory.
    device : index of the CUDA device.

    Raises
    ------
    BackendUnavailable : without a driver, PyCUDA or nvcc; the message says what to install.
    ValueError : for an asymmetric instance, which reversing a path would change in length.
    MemoryError : if the climbers do not fit into device memory.
    """

    kind: str = "cuda"

    def __init__(self, instance: ListedInstance, parameters: ClimberParameters, device: int = 0) -> None:
        parameters.check_for(instance.symmetric)
        self.instance = instance
        self.device = Device(device)
        self.stop = self.device.stop
        limits = self.device.limits
        self.plan = plan = climber_layout.plan(instance, parameters, limits)
        with self.device.working():
            memory = int(self.device.cuda.mem_get_info()[1])
        self.n_climbers = parameters.n_climbers or max(
            1, min(plan.blocks * limits.multiprocessors, memory // 4 // plan.bytes_a_climber)
        )
        self._finished = 0
        self._best_lengths = np.full(self.n_climbers, np.inf)
        self._took = 0.0  # seconds per pair of the last call
        cities = Cities(self.device, instance, listed=False)
        self._climbs = _Climbs(self.device, cities, plan, self.n_climbers)
        self.device.set_up([cities, self._climbs], _ADVICE)

    # ---- ClimberEngine

    def climb(self, key: int, pairs: int = climber_layout.PAIRS_PER_CALL) -> int:
        """Work for about ``pairs`` evaluated pairs, all climbers together; return the climbs finished.

        Where time is short it works for fewer, by how long the last call took, and at least a part of a scan.
        """
        began = time.monotonic()
        if self.device.stop.until is not None:
            left = max(0.0, self.device.stop.until - began)
            if left < self._took * pairs or left == 0.0:
                pairs = int(left / self._took) if self._took else 0
        with self.device.working():
            self._climbs.advance(key, pairs)
            self.device.read(self._best_lengths, "best_lengths")
            before, self._finished = self._finished, self._climbs.counted()[0]
        if pairs:
            self._took = (time.monotonic() - began) / pairs
        return self._finished - before

    @property
    def scans(self) -> int:
        """Scans of all (n-1)(n-2)/2 moves completed since the engine was made."""
        with self.device.working():
            return self._climbs.counted()[1]

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
        """Return the state of all climbs in the format of the CPU engine, and their scans in that of this engine.

        Engines of the other kind restart unfinished scans.
        """
        with self.device.working():
            state = self._climbs.read()
        part = state["part"]
        return {
            **state,
            "row": np.where(part == START_AGAIN, START_AGAIN, 0).astype(np.int64),
            "best_lengths": self._best_lengths.copy(),
        }

    def import_state(self, state: State) -> None:
        """Continue the climbs of an exported state."""
        with self.device.working():
            self._climbs.write(state)
        self._best_lengths = np.array(state["best_lengths"], np.float64)

    # ---- Stoppable

    def stop_at(self, moment: float | None) -> None:
        """End the following calls of ``climb`` soon after this ``time.monotonic()``."""
        self.device.stop.until = moment


class _Climbs:
    """State of the climbers, and the kernel (``Part``)."""

    def __init__(self, device: Device, cities: Cities, plan: climber_layout.ClimberLayout, m: int) -> None:
        self._device = device
        self._cities = cities
        self._plan = plan
        self._m = m
        n = plan.n
        # name in a state -> name on the device, shape and type
        self._arrays: dict[str, tuple[str, tuple[int, ...], type]] = {
            "tours": ("tours", (m, n), np.int32),
            "lengths": ("lengths", (m,), np.float64),
            "restart": ("restarts", (m,), np.int64),
            "part": ("part_numbers", (m,), np.int32),
            "gain": ("gains", (m,), np.float64),
            "move": ("moves", (m, 2), np.int32),
            "best_tours": ("best_tours", (m, n), np.int32),
            "best_lengths": ("best_lengths", (m,), np.float64),
        }
        # an unfinished scan has stored the best moves of places
        self._notes = plan.batch and plan.parts > 1
        if self._notes:
            self._arrays["keys"] = ("keys", (m, n), np.uint64)

    # ---- Part

    def sources(self) -> list[Source]:
        """Return the kernel."""
        plan = self._plan
        definitions = {
            **self._cities.definitions(),
            "UNITS": int(plan.units),
            "SCAN": plan.scan,
            "BATCH": int(plan.batch),
            "RESIDENT": int(plan.resident),
            "SPANS": climber_layout.SPANS_A_THREAD,
            "TILE": climber_layout.TILE,
            "THREADS": climber_layout.THREADS[plan.scan],
            "CONTROL_BYTES": climber_layout.CONTROL_BYTES,
            "PLACE_BYTES": plan.place_bytes,
        }
        return [Source("climbers/hill_climbing.cu", definitions, ["climb"])]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        return self._plan.arrays(self._m)

    def prepare(self) -> None:
        """Initialise the state; climbers start in the first call."""
        device, m = self._device, self._m
        for name, size in self.needed().items():
            device.arrays.zero(name, size)
        device.write("restarts", np.arange(m, dtype=np.int64) - m)
        device.write("part_numbers", np.full(m, START_AGAIN, np.int32))
        device.write("best_lengths", np.full(m, np.inf))
        device.allow_shared("climb", self._plan.shared_bytes)

    # ---- climbs

    def advance(self, key: int, pairs: int) -> None:
        """Launch climbs of ``pairs`` pairs in all."""
        plan, a, m = self._plan, self._device.arrays, self._m
        self._device.launch(
            "climb",
            m,
            plan.threads,
            *self._cities.arguments(),
            *words(key),
            m,
            np.nextafter(np.float32(plan.error), np.float32(np.inf)) if plan.error else np.float32(0.0),
            plan.extra,
            plan.groups,
            plan.segments,
            plan.rows,
            plan.part_rows,
            plan.budget(m, pairs),
            plan.part_cost,
            plan.restart_cost,
            a["tours"],
            a["restarts"],
            a["part_numbers"],
            a["gains"],
            a["moves"],
            a["lengths"],
            a["best_tours"],
            a["best_lengths"],
            a["counts"],
            a.optional("places"),
            a.optional("keys"),
            a.optional("mates"),
            shared=plan.shared_bytes,
        )

    def counted(self) -> tuple[int, int]:
        """Return the numbers of finished climbs and completed scans."""
        counts = np.empty((self._m, 2), np.uint64)
        self._device.read(counts, "counts")
        finished, scans = counts.sum(axis=0)
        return int(finished), int(scans)

    def read(self) -> State:
        """Return the arrays of an exported state by name."""
        state: State = {}
        for name, (place, shape, kind) in self._arrays.items():
            state[name] = np.empty(shape, kind)
            self._device.read(state[name], place)
        return state

    def write(self, state: State) -> None:
        """Restore the arrays of a state of this engine or the CPU engine.

        Scans are restarted if the state does not contain their data. Raises ValueError,
        before anything changes, for a state of another instance or number of climbers.
        """
        m, n = self._m, self._plan.n
        own = {
            "tours": stored_tours(state, "tours", m, n),
            "lengths": stored_numbers(state, "lengths", (m,)),
            "restart": stored_integers(state, "restart", (m,), -m, _LAST_RESTART, np.int64),
            "best_tours": stored_tours(state, "best_tours", m, n),
            "best_lengths": stored_numbers(state, "best_lengths", (m,), infinity=True),
        }
        if "part" in state and ("keys" in state or not self._notes):
            own["part"] = stored_integers(state, "part", (m,), START_AGAIN, self._plan.parts - 1)
            own["gain"] = stored_numbers(state, "gain", (m,), low=-np.inf)
            own["move"] = stored_integers(state, "move", (m, 2), 0, n - 1)
            if self._notes:
                own["keys"] = keys = np.ascontiguousarray(stored(state, "keys", (m, n)), np.uint64)
                checks.integers_in("state['keys'] of places", keys[keys != _NO_MOVE] & _PLACE, 0, n)
        else:
            row = stored_integers(state, "row", (m,), START_AGAIN, n, np.int64)
            own["part"] = np.where(row == START_AGAIN, START_AGAIN, 0).astype(np.int32)
            own["gain"] = np.zeros(m)
            own["move"] = np.zeros((m, 2), np.int32)
        for name, array in own.items():
            self._device.write(self._arrays[name][0], array)
