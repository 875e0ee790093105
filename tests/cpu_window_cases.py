"""Windows of the CPU engine, laid out from a tour."""

from dataclasses import dataclass

import numpy as np

from pymoo_gpuaco.backends.cpu.windows import trials
from pymoo_gpuaco.backends.cpu.windows.window import Units, Window, load, make_units, make_window
from pymoo_gpuaco.candidates.listed import make_graph
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from tests.instances import listed_instance


@dataclass(frozen=True)
class SmallWindows(MemeticParameters):
    """Windows of ``window`` cities and ``trials`` kicks of all tours in a round, instead of the usual ones."""

    window: int = 64
    trials: int | None = None

    def cities_per_window(self, n: int, threads: int) -> int:
        return min(self.window, -(-n // 2))

    def trials_per_tour(self, n: int, m: int, limited: bool) -> int:
        return super().trials_per_tour(n, m, limited) if self.trials is None else max(1, self.trials // m)


def units_of(problem, **focused):
    instance = listed_instance(problem, 8)
    return instance, make_units(instance, make_graph(instance), MemeticParameters(**focused))[0]


def window_of(units, tour, positions):
    w = make_window(len(positions), units.candidates.shape[1])
    load(units, tour, np.asarray(positions, np.int32), len(positions), np.full(len(tour), -1, np.int32), w)
    return w


def cycle(w, m):
    return w.city[w.order[:m]]


def repair_window(units: Units, w: Window, m: int, dirty: np.ndarray) -> float:
    """Repair a window; return the gain."""
    return trials.search_window(units, w, m, dirty, 0, 0.0, 0.0, 1, 0, 0)


def kick_window(
    units: Units, w: Window, m: int, count: int, hot: float, cold: float, longest: int, key: int
) -> float:
    """Run trials in a repaired window; return the gain."""
    clean = np.zeros(len(units.candidates), np.uint8)
    return trials.search_window(units, w, m, clean, count, hot, cold, longest, key, 0)
