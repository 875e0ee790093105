"""Colony of Focused ACO on a CUDA device; iterations run without synchronisation with the host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends.cuda.device import KernelGroup, Source, words
from pymoo_gpuaco.backends.cuda.local_search import Search, TourEngine, move_definitions
from pymoo_gpuaco.backends.cuda.trails import Trails
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import near_cities
from pymoo_gpuaco.candidates.start import greedy_tour
from pymoo_gpuaco.colony.faco import FacoParameters
from pymoo_gpuaco.colony.parameters import LocalSearch
from pymoo_gpuaco.colony.trails import TrailUpdate, relative_eta_power
from pymoo_gpuaco.runtime.philox import fold_in
from pymoo_gpuaco.runtime.state import SMALLEST, State, stored_numbers, stored_tours

_QUEUE = 256  # capacity of the queue of an ant's local search
_ITERATIONS_PER_CHECK = 8  # iterations between two checks of the deadline
# struct Run of iteration.cu
_RUN = np.dtype(
    [(name, "f8") for name in ("source_length", "best_length", "built_from")]
    + [(name, "f4") for name in ("low", "high", "amount")]
    + [(name, "i4") for name in ("winner", "improved", "from_best")]
)


class CudaFaco(TourEngine, KernelGroup):
    """``FocusedColony`` and ``Stoppable`` on one CUDA device.

    Parameters
    ----------
    instance : the problem with its candidate lists.
    parameters : validated.
    device : index of the CUDA device.

    Errors are those of ``Device``, and ValueError for an asymmetric instance: reversing a path changes its length.
    """

    usual_iterations = 25

    def __init__(self, instance: ListedInstance, parameters: FacoParameters, device: int = 0) -> None:
        checks.may_reverse("GPUFACO", instance.symmetric, "another ant colony")
        super().__init__(instance, device)
        self.parameters = p = parameters
        n, k = instance.n, instance.k
        self.n_ants = m = p.resolved_ants(n)
        self.n_built = 0
        cities = self._cities
        self._trails = Trails(self.device, instance, dense=False)
        search = LocalSearch(kicks=0.0) if p.local_search is None else p.local_search
        self._search = Search(self.device, cities, replace(search, kicks=0.0))
        definitions = {
            **cities.definitions,
            **move_definitions(search.moves),
            "SEARCHED": int(p.local_search is not None),
            "CAPACITY": p.capacity,
            "QUEUE": _QUEUE,
        }
        kernels = ["faco_choose", "faco_take", "faco_trails"]
        self.sources = [
            Source("faco/ants.cu", definitions, ["faco_ants"]),
            Source("faco/iteration.cu", {"CAPACITY": p.capacity}, kernels),
        ]
        self._width = 1 + k + int(p.backup_list_size)
        # shapes: see faco_ants and faco_choose
        self.needed = {
            "backup": 4 * n * self._width,
            "eta_beta": 4 * n * k,
            "source": 4 * n,
            "built_from": 4 * n,  # source of the last construction
            "position": 4 * n,
            "best": 4 * n,
            "segments": 8 * m * p.capacity,
            "used": 4 * m,
            "longer": 8 * m,
            "run": _RUN.itemsize,
        }
        self._run = np.zeros(1, _RUN)
        self._run["source_length"] = self._run["best_length"] = np.inf
        self._best = np.arange(n, dtype=np.int32)
        self._unit = 1.0
        self._longer = np.full(m, np.inf)
        parts: list[KernelGroup] = [cities, self._measure, self._trails, self._search, self]
        self.device.set_up(parts, "fewer ants (n_ants) need less")

    def prepare(self) -> None:
        """Upload the data of the instance."""
        instance, beta = self.instance, float(self.parameters.beta)
        self.device.write("backup", near_cities(instance, self._width))
        eta_beta = relative_eta_power(instance.neighbour_distances, instance.least_distance, beta)
        self.device.write("eta_beta", eta_beta.astype(np.float32))
        self._write_tours(self._best, self._best)

    # ---- FocusedColony

    @property
    def best(self) -> tuple[NDArray[np.int32], float]:
        """Return the best tour so far and its exact length."""
        return self._best.copy(), float(self._run["best_length"][0])

    def begin(self) -> float:
        """Start from the greedy edge matching tour after local search, with trails of tau_max; return its length."""
        tours, lengths = self.improve(greedy_tour(self.instance)[None], 0)
        length = float(lengths[0])
        self._unit = length or 1.0
        self._run["source_length"] = self._run["best_length"] = length
        self._best = tours[0].copy()
        with self.device.working():
            self._write_tours(tours[0], tours[0])
            self._trails.reset(self.parameters.limits(length / self._unit, self.instance.k)[1])
        return length

    def iterate(self, key: int, iterations: int) -> None:
        """Run iterations: construct, choose the next source, update the trails. ``key`` in [0, 2**64)."""
        self.n_built = 0
        with self.device.working():
            for number in range(iterations):
                self._launch_iteration(fold_in(key, number))
                if (number + 1) % _ITERATIONS_PER_CHECK == 0 and self.device.wait_and_check_deadline():
                    break
            self._read()

    def _launch_iteration(self, key: int) -> None:
        """Launch one iteration; `_read` waits for it."""
        device, a, p, n = self.device, self.device.arrays, self.parameters, self.instance.n
        low, high = p.limits(1.0, self.instance.k)
        numbers = (*words(key), float(p.best_as_source), float(p.rho), low / high, self._unit)
        tours = (a["source"], a["built_from"], a["position"], a["best"])
        self._launch_ants(key)
        device.launch("faco_choose", 1, 1024, a["run"], a["longer"], self.n_ants, *numbers)
        device.call("faco_take", n, a["run"], a["segments"], a["used"], n, *tours)
        a.swap(("source", "built_from"))
        self._update_trails()
        self.n_built += self.n_ants

    def _launch_ants(self, key: int) -> None:
        a, p, k = self.device.arrays, self.parameters, self.instance.k
        lists = (
            a["neighbours"],
            a["near"],
            k,
            a["backup"],
            self._width,
            a["tau"],
            a["eta_beta"],
            float(p.alpha),
        )
        numbers = (*words(key), int(p.min_new_edges))
        output = (a["segments"], a["used"], a["longer"])
        arguments = (*self._cities.arguments, *lists, a["source"], a["position"], *numbers, *output)
        self.device.launch("faco_ants", self.n_ants, 32, *arguments)

    def _read(self) -> None:
        """Wait for all launches, and read the state of the run."""
        before = float(self._run["best_length"][0])
        self.device.read(self._run, "run")
        self.device.read(self._longer, "longer")
        if self._run["best_length"][0] < before:
            self._best = self._tour("best")
            self._run["best_length"] = self.instance.tour_length(self._best)  # sums of differences round
            self.device.write("run", self._run)

    def construct(self, key: int) -> NDArray[np.float64]:
        """Build m tours from the source, which is unchanged; return their lengths (m,)."""
        device, a = self.device, self.device.arrays
        with device.working():
            self._launch_ants(key)
            device.cuda.memcpy_dtod_async(a["built_from"], a["source"], 4 * self.instance.n)
            device.read(self._longer, "longer")
        self._run["built_from"] = self._run["source_length"]
        self.n_built = self.n_ants
        return self.lengths()

    def lengths(self) -> NDArray[np.float64]:
        """Return the lengths (m,) of the tours of the last construction."""
        return self._run["built_from"] + self._longer

    def tours(self, ants: ArrayLike) -> NDArray[np.int32]:
        """Return the tours (len(ants), n) of the last construction."""
        numbers, capacity = np.asarray(ants, np.intp).reshape(-1), self.parameters.capacity
        tours = np.empty((len(numbers), self.instance.n), np.int32)
        used, segments = np.empty(self.n_ants, np.int32), np.empty((capacity, 2), np.int32)
        with self.device.working():
            source = self._tour("built_from")
            self.device.read(used, "used")
            for row, ant in zip(tours, numbers, strict=True):
                self.device.read(segments, "segments", 8 * capacity * int(ant))
                steps = [
                    source[a : b + 1] if a <= b else source[b : a + 1][::-1] for a, b in segments[: used[ant]]
                ]
                row[:] = np.concatenate(steps)
        return tours

    def follow(self, update: TrailUpdate) -> None:
        """Make the depositing tour the source, and update the trails."""
        tour, amount = update.deposits[0]
        source = np.ascontiguousarray(tour, np.int32)
        self._run["source_length"] = self.instance.tour_length(source)
        self._run["low"], self._run["high"], self._run["amount"] = update.tau_min, update.tau_max, amount
        with self.device.working():
            self._write_tours(source, self._best)
            self._update_trails()

    def _update_trails(self) -> None:
        a, n, k = self.device.arrays, self.instance.n, self.instance.k
        tours, keep = (a["source"], a["position"], n, k), np.float32(1.0 - float(self.parameters.rho))
        self.device.call("faco_trails", n * k, a["run"], a["neighbours"], *tours, keep, a["tau"])

    def _tour(self, name: str) -> NDArray[np.int32]:
        tour = np.empty(self.instance.n, np.int32)
        self.device.read(tour, name)
        return tour

    def _write_tours(self, source: NDArray[np.int32], best: NDArray[np.int32]) -> None:
        """Upload the source, the best tour and the state of the run."""
        position = np.empty(self.instance.n, np.int32)
        position[source] = np.arange(self.instance.n, dtype=np.int32)
        arrays: dict[str, Any] = {"source": source, "position": position, "best": best, "run": self._run}
        for name, array in arrays.items():
            self.device.write(name, array)

    # ---- Accepts

    def accept(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Make the shortest of tours (m, n) the best tour and the source if it is shorter than the best."""
        rows = checks.permutations("tours", tours, self.instance.n).astype(np.int32)
        for row in rows:
            length = float(self.instance.tour_length(row))
            if length < self._run["best_length"][0]:
                self._best = row.copy()
                self._run["best_length"] = self._run["source_length"] = length
                with self.device.working():
                    self._write_tours(row, row)

    # ---- state

    def export_state(self) -> State:
        """Return trails, source, best tour and unit, in the format of the CPU engine."""
        with self.device.working():
            trails, source = self._trails.read(), self._tour("source")
        del trails["tau0"]
        return {
            **trails,
            "tours": np.stack([source, self._best]),
            "lengths": np.array([self._run["source_length"][0], self._run["best_length"][0]]),
            "unit": np.array([self._unit]),
        }

    def import_state(self, state: State) -> None:
        """Continue from an exported state of a colony with the same instance and parameters."""
        n = self.instance.n
        source, best = stored_tours(state, "tours", 2, n)
        lengths = stored_numbers(state, "lengths", (2,), infinity=True)
        unit = stored_numbers(state, "unit", (1,), low=SMALLEST)
        with self.device.working():
            self._trails.write({**state, "tau0": np.zeros(1)})  # raises before anything changes
            self._best, self._unit = best.copy(), float(unit[0])
            self._run["source_length"], self._run["best_length"] = lengths
            self._write_tours(source, best)
