"""The CUDA colony: it holds the arrays on the device, launches the kernels and hands results out as numpy arrays."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco.backends.cuda import compile as compiler
from pymoo_gpuaco.backends.cuda import context, layout
from pymoo_gpuaco.backends.cuda.memory import Arrays, check, release
from pymoo_gpuaco.backends.cuda.neighbours import LENGTH, near_cities
from pymoo_gpuaco.backends.protocol import State
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.problems.instance import Instance
from pymoo_gpuaco.problems.metrics import Metric, distances

_THREADS = 256
_CITIES = "PPPPi"  # the parameters of every kernel that computes distances


class CudaColony:
    """``ColonyEngine`` of Ant System and MMAS on one CUDA device.

    Parameters
    ----------
    instance : the problem, with candidate lists of the length the parameters ask for.
    parameters : validated; ``n_ants=None`` gives 6 ants a multiprocessor with local search, else min(n, 4096).
    device : index of the CUDA device.

    Raises
    ------
    RuntimeError : without a driver, PyCUDA or nvcc; the message says what to install.
    ValueError : for what this engine does not have and ``backend="cpu"`` has: ACS, the acceptance and tournament rule,
        the selective memory, and local search on asymmetric instances.
    MemoryError : when the colony does not fit the device; the message says what would.
    """

    def __init__(self, instance: Instance, parameters: ColonyParameters, device: int = 0) -> None:
        missing = lacks(instance, parameters)
        if missing is not None:
            raise ValueError(f"{missing}; backend='cpu' does")
        self.instance = instance
        self.parameters = parameters
        self.device = device
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._cuda = context.driver()
        self._context = context.retain(device)
        attribute = self._cuda.device_attribute
        hardware = self._cuda.Device(device)
        limits = layout.DeviceLimits(
            int(hardware.get_attribute(attribute.MULTIPROCESSOR_COUNT)),
            int(hardware.get_attribute(attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)),
        )
        self._layout = layout.plan(instance, parameters, limits)
        self.n_ants = self._layout.m
        self._multiprocessors = limits.multiprocessors
        major, minor = hardware.compute_capability()
        code = compiler.compile_files(f"sm_{major}{minor}", self._definitions())
        self._arrays = Arrays(self._cuda)
        self._kernels = self._arrays.kernels
        weakref.finalize(self, release, self._context, self._arrays, self._pid)
        positive = instance.neighbour_distances[instance.neighbour_distances > 0]
        # eta = 1 / d has no value at d = 0: cities at one place count as half the shortest distance apart
        self._shortest = float(positive.min()) / 2.0 if positive.size else 1.0
        self._rest = np.zeros(1, np.float32)  # the trail of all edges without a place of their own
        self._tau0 = 0.0
        self._lengths = np.zeros(self.n_ants)
        # of the shortest tour so far, around whose edges the local search need not look again
        self._reference_length = np.inf
        with self._working():
            free, _ = self._cuda.mem_get_info()
            check(self._needed(), int(free), self._advice())
            try:
                self._load(code)
                self._allocate()
            except self._cuda.MemoryError as error:
                self._arrays.free()
                raise MemoryError(f"the device ran out of memory; {self._advice()}") from error

    @contextmanager
    def _working(self) -> Iterator[None]:
        if os.getpid() != self._pid:
            raise RuntimeError(
                "this CUDA engine belongs to the process that this one was forked from; start workers with "
                "multiprocessing's 'spawn' or 'forkserver' method, or make a new engine in the child"
            )
        with self._lock, context.active(self._context):
            yield

    # ---- set-up

    def _definitions(self) -> dict[str, dict[str, object]]:
        plan, p, instance = self._layout, self.parameters, self.instance
        node = "unsigned short" if plan.node_bytes == 2 else "unsigned int"
        cities: dict[str, object] = {
            "METRIC": int(instance.metric),
            "DIMENSIONS": 3 if instance.metric != Metric.EXPLICIT and instance.coords[:, 2].any() else 2,
            "TABLE": int(layout.uses_table(instance)),
        }
        dense, symmetric = int(plan.dense), int(instance.symmetric)
        race = int(plan.race)
        files: dict[str, dict[str, object]] = {
            "trails.cu": {"DENSE": dense, "SYMMETRIC": symmetric},
            "tours.cu": {"METRIC": cities["METRIC"]},
            "weights.cu": {
                "RACE": race,
                "SLOTS": plan.slots,
                "NODE": node,
                "DENSE": dense,
                "ALPHA_IS_ONE": int(p.alpha == 1.0),
            },
        }
        walk = {
            **cities,
            "SLOTS": plan.slots,
            "NODE": node,
            "TABU": plan.tabu,
            "DENSE": dense,
            "NEAR": LENGTH,
            "BATCH": plan.batch,
            "USUAL_EXPONENTS": int(p.alpha == 1.0 and p.beta == 2.0),
            "TABU_IN_SHARED": int(plan.tabu_in_shared),
            "ANTS_A_BLOCK": plan.ants_a_block,
        }
        if plan.all_cities:
            files["construct_all.cu"] = {**walk, "RULE": plan.rule}
        else:
            files["construct.cu"] = {**walk, "RACE": race, "RESIDENT": int(plan.resident)}
        if p.local_search is not None:
            files["local_search.cu"] = {
                **cities,
                "NODE": node,
                "OR_OPT": int(p.local_search.moves == "2opt+oropt"),
                "IN_SHARED": int(plan.search_in_shared),
            }
        return files

    def _needed(self) -> dict[str, int]:
        """Bytes of every array, before any is taken."""
        plan, instance = self._layout, self.instance
        m, n, k = plan.m, plan.n, plan.k
        needed = {
            "tours": 4 * m * n,
            "tour": 4 * n,
            "lengths": 8 * m,
            "tau": 4 * plan.trails[0] * plan.trails[1],
            "neighbours": 4 * n * k,
            "eta_beta": 8 * n * k,
            "factors": 4 * n * (plan.stride if plan.tiered else n),
            "candidates": plan.node_bytes * n * plan.stride,
            "coords": instance.coords.nbytes,
            "matrix": instance.matrix.nbytes,
            "near_cities": plan.node_bytes * n * LENGTH,
            "visited": n,
            "count": 8,
            "reference": 8 * n,
        }
        if plan.all_cities and plan.tiered:
            needed.update(
                {
                    "aliases": 8 * n * n,
                    "rest_sums": 8 * n,
                    "rest": 4 * n,
                    "alias_scratch": 12 * n * plan.alias_rows,
                }
            )
        if plan.dense:
            needed["bound"] = 4 * n
        if layout.uses_table(instance):
            needed["table"] = 4 * n * n
        else:
            needed["points"] = 16 * n
        if not plan.tabu_in_shared:
            needed["tabus"] = plan.blocks * plan.ants_a_block * plan.tabu_bytes
        if self.parameters.local_search is not None:
            needed["near"] = 4 * n * k
            if not plan.search_in_shared:
                needed["searches"] = plan.search_blocks * plan.search_bytes
        return needed

    def _advice(self) -> str:
        if self._layout.all_cities:
            return "candidate_list_size=32 needs memory in proportion to n"
        if self._layout.dense:
            return "pheromone='candidate' (memory='candidate') needs memory in proportion to n"
        return "fewer ants (n_ants) need less"

    def _allocate(self) -> None:
        instance, arrays, plan = self.instance, self._arrays, self._layout
        n, metric = plan.n, instance.metric
        arrays.upload("neighbours", np.asarray(instance.neighbours, np.int32))
        node = np.uint16 if plan.node_bytes == 2 else np.uint32
        arrays.upload("near_cities", near_cities(instance).astype(node))
        heuristic = np.maximum(instance.neighbour_distances, self._shortest) ** -float(self.parameters.beta)
        arrays.upload("eta_beta", heuristic)
        if metric == Metric.EXPLICIT:
            arrays.upload("matrix", np.asarray(instance.matrix, np.float64))
            arrays.upload("table", np.asarray(instance.matrix, np.float32))
        else:
            arrays.upload("coords", np.asarray(instance.coords, np.float64))
            if layout.uses_table(instance):
                everyone = np.arange(n)
                table = distances(metric, instance.coords, everyone[:, None], everyone[None, :])
                arrays.upload("table", table.astype(np.float32))
            else:
                arrays.upload("points", _points(instance.coords))
        for name, size in self._needed().items():
            if name not in arrays:
                arrays.allocate(name, size)
        for name in ("tours", "lengths", "tau", "bound"):
            if name in arrays:
                arrays.zero(name, self._needed()[name])
        self._forget_reference()
        places = n * plan.stride
        self._call("pad_candidates", places, arrays["neighbours"], n, plan.k, arrays["candidates"])
        if plan.all_cities and plan.tiered:
            self._build_aliases()
        if self.parameters.local_search is not None:
            self._call(
                "neighbour_distances",
                n * plan.k,
                *self._cities(),
                arrays["neighbours"],
                plan.k,
                arrays["near"],
            )

    def _load(self, code: dict[str, bytes]) -> None:
        modules = self._arrays.modules
        for name, cubin in code.items():
            modules[name] = self._cuda.module_from_buffer(cubin)
        signatures = {
            "weights.cu": {"pad_candidates": "PiiP", "candidate_weights": "PPPdiiP"},
            "trails.cu": {
                "fill_trails": "PQf",
                "evaporate": "PQfff",
                "find_bounds": "PPiiP",
                "deposit": "PPPiiPfff",
                "sum_deposits": "PPiiPPidd",
                "apply_sums": "PPPiiPdf",
                "count_branches": "PPiifP",
            },
            "tours.cu": {
                "measure_tours": _CITIES + "PiP",
                "tour_neighbours": "PiiP",
                "greedy_tour": _CITIES + "PiiPP",
            },
            "construct_all.cu": {
                "all_weights": "P" + _CITIES + "fffP",
                "build_aliases": "P" + _CITIES + "fffiiPPPP",
                "tier_weights": "PPPPPfiiPP",
                "construct_all": "PPPPPPP" + _CITIES + "fffIIiiPP",
            },
            "construct.cu": {"construct_tours": "PPPPP" + _CITIES + "fffIIiiPP"},
            "local_search.cu": {
                "neighbour_distances": _CITIES + "PiP",
                "improve_tours": _CITIES + "PPPiiiiiIIqPP",
            },
        }
        for file, functions in signatures.items():
            if file in modules:
                for name, parameters in functions.items():
                    self._kernels[name] = modules[file].get_function(name)
                    self._kernels[name].prepare(parameters)
        self._allow_shared(
            "construct_all" if self._layout.all_cities else "construct_tours", self._layout.shared_bytes
        )
        if "improve_tours" in self._kernels and self._layout.search_in_shared:
            self._allow_shared("improve_tours", self._layout.search_bytes)

    def _allow_shared(self, name: str, size: int) -> None:
        if size > 48 << 10:
            attribute = self._cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._kernels[name].set_attribute(attribute, size)

    def _call(self, name: str, threads: int, *arguments: Any) -> None:
        """Launch with at least ``threads`` threads in blocks of 256."""
        blocks = max(1, -(-threads // _THREADS))
        self._kernels[name].prepared_call((blocks, 1), (_THREADS, 1, 1), *arguments)

    def _cities(self) -> tuple[Any, Any, Any, Any, int]:
        a = self._arrays
        return a["coords"], a["matrix"], a["points"], a["table"], self._layout.n

    # ---- ColonyEngine

    def greedy_tour(self, start: int = 0) -> tuple[NDArray[np.int32], float]:
        """Nearest-neighbour tour from city ``start``, ties to the lower number, and its length."""
        a, n, k = self._arrays, self._layout.n, self._layout.k
        tour, length = np.empty(n, np.int32), np.empty(1)
        with self._working():
            a.zero("visited", n)
            self._kernels["greedy_tour"].prepared_call(
                (1, 1), (512, 1, 1), *self._cities(), a["neighbours"], k, int(start), a["visited"], a["tour"]
            )
            self._call("measure_tours", 32, *self._cities(), a["tour"], 1, a["count"])
            self._cuda.memcpy_dtoh(tour, a["tour"])
            self._cuda.memcpy_dtoh(length, a["count"])
        return tour, float(length[0])

    def reset_trails(self, value: float) -> None:
        """Set every trail to ``value``."""
        self._tau0 = float(value)
        self._rest[0] = value
        with self._working():
            self._fill(np.float32(value))

    def _fill(self, value: np.float32) -> None:
        rows, columns = self._layout.trails
        self._call("fill_trails", self._spread(rows * columns), self._arrays["tau"], rows * columns, value)
        self._find_bounds()

    def _find_bounds(self) -> None:
        a, plan = self._arrays, self._layout
        if plan.dense:
            self._call("find_bounds", 32 * plan.n, a["tau"], a["neighbours"], plan.n, plan.k, a["bound"])

    def _spread(self, items: int) -> int:
        """Threads of a kernel that loops over its items: enough for all, no more than fill the device."""
        return min(items, 2048 * self._multiprocessors)

    def construct(self, key: int) -> NDArray[np.float64]:
        """Build and improve m tours; return their exact lengths (m,). ``key`` in [0, 2**64)."""
        with self._working():
            self._build(key)
            self._improve(key)
            self._measure()
            best = int(self._lengths.argmin())
            if self._lengths[best] < self._reference_length:
                self._reference_length = float(self._lengths[best])
                a, n = self._arrays, self._layout.n
                self._call("tour_neighbours", n, a["tours"], best, n, a["reference"])
        return self._lengths.copy()

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Local search on m given tours (m, n); return copies and their exact lengths (m,)."""
        a, plan = self._arrays, self._layout
        given = _fitting({"tours": np.asarray(tours)}, "tours", (plan.m, plan.n), np.int32)
        result = np.empty_like(given)
        with self._working():
            self._cuda.memcpy_htod(a["tours"], given)
            self._forget_reference()
            self._improve(key)
            self._measure()
            self._cuda.memcpy_dtoh(result, a["tours"])
        return result, self._lengths.copy()

    def _forget_reference(self) -> None:
        self._reference_length = np.inf
        self._cuda.memcpy_htod(self._arrays["reference"], np.full((self._layout.n, 2), -1, np.int32))

    def _measure(self) -> None:
        a, m = self._arrays, self._layout.m
        self._call("measure_tours", 32 * m, *self._cities(), a["tours"], m, a["lengths"])
        self._cuda.memcpy_dtoh(self._lengths, a["lengths"])

    def _build(self, key: int) -> None:
        a, plan = self._arrays, self._layout
        exponents = self._exponents()
        if plan.all_cities:
            self._weigh_all()
            kernel = "construct_all"
            rows: tuple[Any, ...] = (a["factors"], a["candidates"], a["rest"], a["aliases"])
        else:
            self._weigh_candidates()
            kernel = "construct_tours"
            rows = (a["factors"], a["candidates"])
        self._kernels[kernel].prepared_call(
            (plan.blocks, 1),
            (32 * plan.ants_a_block, 1, 1),
            *rows,
            a["tau"] if plan.dense else np.intp(0),
            a["bound"],
            a["near_cities"],
            *self._cities(),
            *exponents,
            *_words(key),
            plan.m,
            plan.tabu_bytes,
            a["tabus"],
            a["tours"],
            shared_size=plan.shared_bytes,
        )

    def _exponents(self) -> tuple[np.float32, np.float32, np.float32]:
        p = self.parameters
        return np.float32(p.alpha), np.float32(p.beta), np.float32(self._shortest)

    def _weigh_candidates(self) -> None:
        a, plan, alpha = self._arrays, self._layout, float(self.parameters.alpha)
        arrays = (a["tau"], a["neighbours"], a["eta_beta"])
        self._call("candidate_weights", 32 * plan.n, *arrays, alpha, plan.n, plan.k, a["factors"])

    def _weigh_all(self) -> None:
        a, plan = self._arrays, self._layout
        if not plan.tiered:
            self._call(
                "all_weights", _THREADS * plan.n, a["tau"], *self._cities(), *self._exponents(), a["factors"]
            )
            return
        self._call(
            "tier_weights",
            32 * plan.n,
            a["tau"],
            a["bound"],
            a["neighbours"],
            a["eta_beta"],
            a["rest_sums"],
            np.float32(self.parameters.alpha),
            plan.n,
            plan.k,
            a["factors"],
            a["rest"],
        )

    def _build_aliases(self) -> None:
        """Alias tables of all rows, some at a time: each row needs room to be sorted in."""
        a, plan = self._arrays, self._layout
        stacks = int(a["alias_scratch"]) + 8 * plan.n * plan.alias_rows
        for first in range(0, plan.n, plan.alias_rows):
            self._kernels["build_aliases"].prepared_call(
                (-(-plan.alias_rows // 32), 1),
                (32, 1, 1),
                a["candidates"],
                *self._cities(),
                *self._exponents(),
                first,
                plan.alias_rows,
                a["alias_scratch"],
                np.intp(stacks),
                a["aliases"],
                a["rest_sums"],
            )

    def _improve(self, key: int) -> None:
        a, plan, search = self._arrays, self._layout, self.parameters.local_search
        if search is None:
            return
        kicks = search.number_of_kicks(plan.n, layout.KICKS_A_CITY)
        self._kernels["improve_tours"].prepared_call(
            (plan.search_blocks, 1),
            (32, 1, 1),
            *self._cities(),
            a["neighbours"],
            a["near"],
            a["reference"],
            plan.k,
            min(plan.k, layout.SEARCH_NEIGHBOURS),
            plan.m,
            kicks,
            max(1, min(int(search.kick_length), (plan.n - 2) // 2)),
            *_words(key),
            plan.search_bytes,
            a["searches"],
            a["tours"],
            shared_size=plan.search_bytes if plan.search_in_shared else 0,
        )

    def tours(self, ants: ArrayLike) -> NDArray[np.int32]:
        """Tours (len(ants), n) of the last construction."""
        m, n = self._layout.m, self._layout.n
        wanted = np.arange(m)[np.asarray(ants, dtype=np.intp)].reshape(-1)
        found = np.empty((len(wanted), n), np.int32)
        with self._working():
            start = int(self._arrays["tours"])
            if len(wanted) > 16:
                everyone = np.empty((m, n), np.int32)
                self._cuda.memcpy_dtoh(everyone, start)
                return everyone[wanted]
            for row, ant in zip(found, wanted, strict=True):
                self._cuda.memcpy_dtoh(row, start + 4 * n * int(ant))
        return found

    def update_trails(self, update: TrailUpdate) -> None:
        """Evaporate and deposit, see ``TrailUpdate``."""
        a, plan = self._arrays, self._layout
        size = plan.trails[0] * plan.trails[1]
        keep, low, high = np.float32(1.0 - update.rho), np.float32(update.tau_min), np.float32(update.tau_max)
        with self._working():
            if update.on_tours_only:
                for tour, amount in update.deposits:
                    self._deposit(tour, keep, np.float32(update.rho * amount), np.float32(np.inf))
                return
            self._call("evaporate", self._spread(-(-size // 4)), a["tau"], size, keep, low, high)
            if self._layout.dense:
                self._call("evaporate", self._layout.n, a["bound"], self._layout.n, keep, low, high)
            self._rest[0] = min(high, max(low, self._rest[0] * keep))
            for tour, amount in update.deposits:
                self._deposit(tour, np.float32(1.0), np.float32(amount), high)
            if update.colony_amount > 0.0:
                self._deposit_colony(size, float(update.colony_amount), high)

    def _deposit(
        self, tour: NDArray[np.int32], keep: np.float32, amount: np.float32, high: np.float32
    ) -> None:
        a, n, k = self._arrays, self._layout.n, self._layout.k
        row = np.ascontiguousarray(tour, np.int32)
        if row.shape != (n,):
            raise ValueError(f"a tour to deposit must have shape ({n},), got {row.shape}")
        self._cuda.memcpy_htod(a["tour"], row)
        self._call("deposit", n, a["tau"], a["bound"], a["neighbours"], n, k, a["tour"], keep, amount, high)

    def _deposit_colony(self, size: int, amount: float, high: np.float32) -> None:
        a, plan = self._arrays, self._layout
        if "sums" not in a:
            free, _ = self._cuda.mem_get_info()
            check({"sums of deposits": 8 * size}, int(free), self._advice())
            a.allocate("sums", 8 * size)
            a.zero("sums", 8 * size)
        shortest = float(self._lengths.min())
        # the largest deposit is 2^40 units: 2^20 ants cannot overflow 64 bits
        unit = (max(1.0, amount) if shortest <= 0.0 else amount / shortest) * 2.0**-40
        self._call(
            "sum_deposits",
            self._spread(plan.m * plan.n),
            a["sums"],
            a["neighbours"],
            plan.n,
            plan.k,
            a["tours"],
            a["lengths"],
            plan.m,
            amount,
            unit,
        )
        self._call(
            "apply_sums",
            self._spread(size),
            a["tau"],
            a["bound"],
            a["neighbours"],
            plan.n,
            plan.k,
            a["sums"],
            unit,
            high,
        )

    def branching_factor(self, lam: float) -> float:
        """Mean number of candidates a city with a trail above min + lam (max - min)."""
        a, n, k = self._arrays, self._layout.n, self._layout.k
        count = np.zeros(1, np.uint64)
        with self._working():
            self._cuda.memcpy_htod(a["count"], count)
            self._call("count_branches", 32 * n, a["tau"], a["neighbours"], n, k, np.float32(lam), a["count"])
            self._cuda.memcpy_dtoh(count, a["count"])
        return float(count[0]) / n

    def export_state(self) -> State:
        """Trails, the last tours and lengths, in the form of the CPU engine."""
        plan = self._layout
        tau, tours = np.empty(plan.trails, np.float32), np.empty((plan.m, plan.n), np.int32)
        reference = np.empty((plan.n, 2), np.int32)
        with self._working():
            self._cuda.memcpy_dtoh(tau, self._arrays["tau"])
            self._cuda.memcpy_dtoh(tours, self._arrays["tours"])
            self._cuda.memcpy_dtoh(reference, self._arrays["reference"])
            return {
                "tau": tau,
                "ids": np.empty((0, 0), np.int32),
                "tail": np.empty(0, np.int32),
                "rest": self._rest.copy(),
                "tau0": np.array([self._tau0]),
                "reference": reference,
                "reference_length": np.array([self._reference_length]),
                "tours": tours,
                "lengths": self._lengths.copy(),
            }

    def import_state(self, state: State) -> None:
        """Continue from an exported state of a colony with the same instance and parameters."""
        plan = self._layout
        tau = _fitting(state, "tau", plan.trails, np.float32)
        tours = _fitting(state, "tours", (plan.m, plan.n), np.int32)
        lengths = _fitting(state, "lengths", (plan.m,), np.float64)
        rest = _fitting(state, "rest", (1,), np.float32)
        reference = _fitting(state, "reference", (plan.n, 2), np.int32)
        with self._working():
            self._cuda.memcpy_htod(self._arrays["tau"], tau)
            self._find_bounds()
            self._cuda.memcpy_htod(self._arrays["tours"], tours)
            self._cuda.memcpy_htod(self._arrays["lengths"], lengths)
            self._cuda.memcpy_htod(self._arrays["reference"], reference)
            self._reference_length = float(np.asarray(state["reference_length"])[0])
            self._lengths = lengths.copy()
            self._rest = rest.copy()
            self._tau0 = float(np.asarray(state["tau0"])[0])


def lacks(instance: Instance, parameters: ColonyParameters) -> str | None:
    """What the parameters ask for and only the CPU engine has, or None."""
    if parameters.selection in layout.UNSUPPORTED:
        return f"the CUDA engine does not have selection={parameters.selection!r} yet"
    if parameters.memory == "selective":
        return "the CUDA engine does not have the selective pheromone memory yet"
    if parameters.local_search is not None and not instance.symmetric:
        return "the CUDA engine's local search reverses paths and needs a symmetric instance"
    return None


def _words(key: int) -> tuple[np.uint32, np.uint32]:
    """A 64-bit key as the generator takes it."""
    return np.uint32(int(key) & 0xFFFFFFFF), np.uint32(int(key) >> 32)


def _points(coords: NDArray[np.float64]) -> NDArray[np.float32]:
    """Float coordinates (n, 2) or (n, 4), relative to the least so that they keep their digits."""
    moved = coords - coords.min(axis=0)
    if not coords[:, 2].any():
        return np.ascontiguousarray(moved[:, :2], np.float32)
    points = np.zeros((len(coords), 4), np.float32)
    points[:, :3] = moved
    return points


def _fitting(state: State, name: str, shape: tuple[int, ...], kind: type) -> NDArray:
    array = np.asarray(state[name])
    if array.shape != shape:
        raise ValueError(
            f"state['{name}'] must have shape {shape}, got {array.shape}: "
            "it belongs to another instance, colony size or memory"
        )
    return np.ascontiguousarray(array, kind)
