"""Do trails help focused ants on a GPU? Runs with each use of them, beside runs that know none, in equal time.

    python benchmarks/gpu_trail_uses.py FOLDER [--seeds 10] [--budget 400] [--only pr2392 ..]

FOLDER holds the TSPLIB files; random:N and clustered:N are maps that are made. What the tours at hand have in common is
the trail (a population-based trail: M. Guntsch and M. Middendorf, EvoWorkshops 2002): before every generation the host
counts which edges how many of them have. A use is compared with "none" by a two-sided sign test over the pairs of runs
of one instance and seed, ties left out, corrected for the number of uses (Holm). A use that after three seeds has not
won more pairs than it lost is dropped, which can only make it harder to be found better. The runs of each seed that
begins end; none begins that would not fit the budget, in seconds. What is done is written after every instance.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from folder import problems_of
from numpy.typing import NDArray
from options import parser_for
from record import write
from sign_tests import Pairs, verdicts
from timed_runs import run_for

from pymoo_gpuaco import TSP
from pymoo_gpuaco.backends.cuda import engines, focused
from pymoo_gpuaco.backends.cuda.device import sources
from pymoo_gpuaco.backends.cuda.focused import CudaWindows
from pymoo_gpuaco.backends.cuda.tours.tours import Tours
from pymoo_gpuaco.backends.cuda.windows.plan import Layout
from pymoo_gpuaco.backends.cuda.windows.windows import Windows
from pymoo_gpuaco.host.compiled import compiled
from pymoo_gpuaco.host.threads import spread, thread_count
from pymoo_gpuaco.search.penalties import Lists

NAME = "gpu_trail_uses"
FILES = ("u1817", "u2152", "pcb3038", "fl3795", "fnl4461", "rl5915", "pla7397", "rl11849", "d15112", "d18512")
MADE = ("random:3000", "random:4000", "random:5000", "random:8000", "random:12000")
CLUSTERED = ("clustered:2000", "clustered:3000", "clustered:4000", "clustered:5000", "clustered:8000")
INSTANCES = (*FILES, *MADE, *CLUSTERED)
# Seconds of a run. Smaller instances would all end at their optimum in a second.
SHORT, LONG, SHORT_UP_TO = 0.5, 1.0, 5000
LOOK = 3  # seeds after which a use that is not ahead is dropped
EVERY, HALF, NO_WINDOW = 100, 50, 0  # of a hundred windows
_ROOM = 32  # edges of a city that are counted

# Where the kernel cuts windows, and the same over a list of cities in which some stand more often. The list is handed
# in as ``partner``, which instances without fixed edges have no other use for.
EVENLY = "all_positions + offset, n, centre};"
BY_LIST = "all_positions + offset, n, all_positions[offset + partner[centre]]};"


class ByChance(CudaWindows):
    """Nothing but chance: the tours are not looked at."""

    guided = NO_WINDOW


class ByTrails(CudaWindows):
    """Kicks as they are by default: in some windows ants follow trails and distance."""

    guided = focused.GUIDED


class Looking(CudaWindows):
    """Looks at the tours before every generation: ``shares`` (n, k) of them that have a candidate edge."""

    guided = NO_WINDOW

    def weigh(self) -> None:
        """Use the shares."""
        n, tours = self.instance.n, self.windows.read()
        near = self.windows.lists.near
        beside = np.empty((len(tours), 2, n), np.int32)
        spread(lambda _, a, b: _beside(tours, beside, a, b), len(tours), thread_count())
        counts, chosen = np.zeros(near.shape), np.empty_like(near)

        def look(_: int, first: int, last: int) -> None:
            ids, scores = np.empty(_ROOM, np.int32), np.empty(_ROOM)
            _look(near, beside, counts, chosen, ids, scores, first, last)

        spread(look, n, thread_count())
        self.use(tours, counts / len(tours), chosen)

    def use(self, tours: NDArray[np.int32], shares: NDArray[np.float64], chosen: NDArray[np.int32]) -> None:
        """Change what the next rounds look at; ``chosen`` (n, k) are the edges of most tours, then the candidates."""
        raise NotImplementedError


class KicksWhereToursDiffer(Looking):
    """In half of the windows ants force edges in that some tours have and others have not."""

    guided = HALF

    def use(self, tours: NDArray[np.int32], shares: NDArray[np.float64], chosen: NDArray[np.int32]) -> None:
        """Weigh each edge by f (1 - f), f being its share."""
        self.device.write("window_weights", (shares * (1.0 - shares)).astype(np.float32))


class CandidatesOfTours(Looking):
    """Searches look at the edges of the tours before all others."""

    def use(self, tours: NDArray[np.int32], shares: NDArray[np.float64], chosen: NDArray[np.int32]) -> None:
        """Replace the lists."""
        self.device.write("window_near", chosen)


class ListedWindows(Windows):
    """Windows around the cities of a list."""

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        return {**super().needed(), "window_partner": 4 * self._cities.n}

    def prepare(self) -> None:
        """Upload the lists; at first every city stands once on that of centres."""
        super().prepare()
        self._device.write("window_partner", np.arange(self._cities.n, dtype=np.int32))


class WindowsWhereToursDiffer(Looking):
    """Half of the windows lie anywhere, the others where tours differ."""

    def _parts(self, layout: Layout, lists: Lists) -> tuple[Tours, Windows]:
        windows = ListedWindows(self.device, self._cities, lists, self._nearest, self.scale, *layout)
        return Tours(self.device, self._measure, layout.tours, self.instance.n), windows

    def use(self, tours: NDArray[np.int32], shares: NDArray[np.float64], chosen: NDArray[np.int32]) -> None:
        """List the cities in the order of a tour, each as often as it has a part in sum f (1 - f) and in n."""
        differs = (shares * (1.0 - shares)).sum(axis=1)
        weights = (1.0 + differs / max(float(differs.mean()), 1e-9))[tours[0]]
        upto, n = np.cumsum(weights), len(weights)
        places = np.searchsorted(upto, (np.arange(n) + 0.5) / n * upto[-1])
        self.device.write("window_partner", tours[0][np.minimum(places, n - 1)])


#: the first is what the others are compared with
USES: dict[str, type[CudaWindows]] = {
    "none": ByChance,
    "kicks by trails": ByTrails,
    "kicks where tours differ": KicksWhereToursDiffer,
    "windows where tours differ": WindowsWhereToursDiffer,
    "candidates of tours": CandidatesOfTours,
}
BASELINE, *OTHERS = USES


@compiled
def _beside(tours, beside, first, last):  # type: ignore[no-untyped-def]
    """Neighbours (m, 2, n) of every city on tours (m, n)."""
    for t in range(first, last):
        before = tours[t, tours.shape[1] - 1]
        for p in range(tours.shape[1]):
            city = tours[t, p]
            beside[t, 0, city] = before
            beside[t, 1, before] = city
            before = city


@compiled
def _look(near, beside, counts, chosen, ids, scores, first, last):  # type: ignore[no-untyped-def]
    """Count the tours that have each candidate edge; choose as many, those of most tours first.

    Of equally many, candidates come first, in their order.
    """
    k = near.shape[1]
    place = 1.0 / (k + 1)
    for city in range(first, last):
        size = k
        for r in range(k):
            ids[r], scores[r] = near[city, r], -r * place
        for t in range(beside.shape[0]):
            for side in range(2):
                other = beside[t, side, city]
                r = 0
                while r < size and ids[r] != other:
                    r += 1
                if r < size:
                    scores[r] += 1.0
                elif size < ids.shape[0]:
                    ids[size], scores[size] = other, place
                    size += 1
        for r in range(k):
            counts[city, r] = np.rint(scores[r] + r * place)
        for r in range(k):
            best = 0
            for s in range(1, size):
                if scores[s] > scores[best]:
                    best = s
            chosen[city, r] = ids[best]
            scores[best] = -2.0


@contextmanager
def kernels_of(use: str) -> Iterator[None]:
    """Let engines be made that search by a use of trails."""
    usual, guided = engines.CudaWindows, focused.GUIDED
    engines.CudaWindows, focused.GUIDED = USES[use], USES[use].guided  # type: ignore[misc, attr-defined]
    try:
        if USES[use] is WindowsWhereToursDiffer:
            with _changed_kernel():
                yield
        else:
            yield
    finally:
        engines.CudaWindows, focused.GUIDED = usual, guided  # type: ignore[misc]


@contextmanager
def _changed_kernel() -> Iterator[None]:
    """Let windows be cut around the cities of a list."""
    usual = sources.folder
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(shutil.copytree(usual(), Path(scratch) / "cuda_src"))
        search = copy / "windows" / "search.cu"
        before = search.read_text(encoding="utf-8")
        if before.count(EVENLY) != 1:
            raise RuntimeError(f"windows/search.cu has not {EVENLY!r} once")
        search.write_text(before.replace(EVENLY, BY_LIST), encoding="utf-8")
        sources.folder = lambda: copy
        try:
            yield
        finally:
            sources.folder = usual


def clustered(n: int) -> TSP:
    """Cities around 20 to 100 centres in a square, normal deviates of a fiftieth of its side, whole coordinates."""
    draw = np.random.default_rng(n)
    side = 1_000_000.0
    centres = draw.random((max(20, n // 100), 2)) * side
    places = centres[draw.integers(0, len(centres), n)] + draw.normal(0.0, side / 50.0, (n, 2))
    return TSP(np.round(places), "EUC_2D", name=f"clustered-{n}")


def limit_of(n: int) -> float:
    """Seconds of a run on n cities."""
    return SHORT if n <= SHORT_UP_TO else LONG


class Lengths:
    """Lengths of the runs so far: instance, use, seed."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str, int], float] = {}

    def differences(self, use: str, name: str | None = None) -> list[float]:
        """Of all pairs of a use, or of those of one instance, in percent of the baseline's length."""
        return [
            100.0 * (length / self.found[n, BASELINE, seed] - 1.0)
            for (n, u, seed), length in self.found.items()
            if u == use and name in (None, n)
        ]

    @property
    def seeds(self) -> int:
        """How many seeds have been run, or begun."""
        return len({seed for _, _, seed in self.found})

    def goes_on(self, use: str) -> bool:
        """Whether a use is still ahead of the baseline."""
        pairs = Pairs.of(self.differences(use))
        return pairs.better > pairs.worse

    def row(self, name: str, n: int, best_known: float | None) -> list[Any]:
        """Of an instance: the mean gap of the baseline, and what each use adds to it in the same seeds."""
        own = [length for (i, use, _), length in self.found.items() if i == name and use == BASELINE]
        least = best_known or min(length for (i, _, _), length in self.found.items() if i == name)
        gap = 100.0 * (statistics.mean(own) / least - 1.0)
        added = [self.differences(use, name) for use in OTHERS]
        return [name, n, limit_of(n), len(own), round(gap, 4), *(round(statistics.mean(a), 4) for a in added)]


def write_down(lengths: Lengths, problems: dict[str, TSP], seeds: int) -> list[str]:
    """Write what is done, of ``seeds`` at most; return what it says of each use."""
    pairs = {use: Pairs.of(lengths.differences(use)) for use in OTHERS}
    lines = [
        f"{use}: {words}; {statistics.mean(lengths.differences(use)):+.4f} % in the mean."
        for use, words in verdicts(pairs).items()
    ]
    done = {name for name, use, _ in lengths.found if use == OTHERS[-1]}
    write(
        NAME,
        "Uses of trails on a GPU",
        ("instance", "cities", "seconds", "seeds", f"gap %, {BASELINE}", *(f"{use}, %" for use in OTHERS)),
        [lengths.row(name, p.n_cities, p.best_known) for name, p in problems.items() if name in done],
        {
            "algorithm": "GPUMMAS()",
            "seeds": lengths.seeds,
            "seeds at most": seeds,
            "uses compared": len(OTHERS),
        },
        [
            "gap: mean above the best known length, of maps that are made above the shortest tour of these runs; "
            "set-up counts. Of each use: what it adds to the length in the same seeds.",
            *lines,
            f"A use that had not won more pairs than it lost after {LOOK} seeds was dropped there.",
        ],
    )
    return lines


def main() -> None:
    parser = parser_for(__doc__, seeds=10, only=INSTANCES)
    parser.add_argument("--budget", type=float, default=400.0, help="seconds that all runs may take")
    arguments = parser.parse_args()
    files = [name for name in arguments.only if not name.startswith("clustered:")]
    problems = problems_of(arguments.folder, files)
    problems |= {name: clustered(int(name.split(":")[1])) for name in arguments.only if name not in files}
    for problem in {problem.metric: problem for problem in problems.values()}.values():
        for use in USES:
            with kernels_of(use):
                run_for(problem, LONG, 0, "cuda")  # compiles
    lengths, uses, began = Lengths(), list(USES), time.perf_counter()
    for seed in range(1, arguments.seeds + 1):
        if seed == LOOK + 1:
            uses = [BASELINE, *filter(lengths.goes_on, OTHERS)]
        wanted = len(uses) * sum(limit_of(problem.n_cities) for problem in problems.values())
        if len(uses) == 1 or time.perf_counter() - began + wanted > arguments.budget:
            break
        for name, problem in problems.items():
            for use in uses:  # in turns: a device that slows down does so for all
                with kernels_of(use):
                    run = run_for(problem, limit_of(problem.n_cities), seed, "cuda")
                lengths.found[name, use, seed] = run.length
            lines = write_down(lengths, problems, arguments.seeds)
        print(f"seed {seed}, {time.perf_counter() - began:.0f} s", *lines, sep="\n", flush=True)


if __name__ == "__main__":
    main()
