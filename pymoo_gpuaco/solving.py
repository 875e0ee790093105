"""One line for people who do not know pymoo, and one for several seeds."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pymoo.core.problem import Problem
from pymoo.core.result import Result
from pymoo.optimize import minimize

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms import GPU2PPLS, GPUMMAS, GPUMemetic
from pymoo_gpuaco.algorithms.base import TourAlgorithm
from pymoo_gpuaco.algorithms.front_algorithm import FrontAlgorithm
from pymoo_gpuaco.algorithms.front_run import FrontTermination
from pymoo_gpuaco.algorithms.termination import ColonyTermination
from pymoo_gpuaco.backends import devices_for
from pymoo_gpuaco.problems.datasets import load_tsp
from pymoo_gpuaco.problems.demands import violations_in_words
from pymoo_gpuaco.problems.instance import is_tour_length
from pymoo_gpuaco.problems.multi_objective import Front, as_multi_objective
from pymoo_gpuaco.problems.notebook import html_table, svg_of
from pymoo_gpuaco.problems.open_path import constrained
from pymoo_gpuaco.problems.reading import is_source, read_cities
from pymoo_gpuaco.problems.table import READING
from pymoo_gpuaco.problems.tsp import TSP, tsp_of
from pymoo_gpuaco.problems.writing import write_route

__all__ = ["Solution", "Summary", "solve", "summary"]

R = TypeVar("R", covariant=True)
_SECONDS, _SEED = 10.0, 1  # where nothing else is given


class Solvable(Protocol[R]):
    """A problem whose type says what `solve` returns.

    mypy takes a subclass of pymoo's untyped Problem for any class, and tells subclasses apart by this method alone.
    """

    def _solved_as(self) -> R: ...


class _Pair(NamedTuple):
    tour: NDArray[np.int64]
    length: float


class Solution(_Pair):
    """What `solve` returns: ``tour, length = solve(..)``. A notebook shows it as a table and a picture.

    Attributes
    ----------
    tour : (n,) cities in order, from city 0 on; of an `OpenPath` from its first to its last.
    length : of the tour, under the problem's metric.
    problem : what was solved.
    names : (n,) names of the cities in the order of the tour; where they have none, their ids or positions.
    """

    problem: Problem | None

    def __new__(cls, tour: NDArray[np.int64], length: float, problem: Problem | None = None) -> Solution:
        """Make the pair, which remembers its problem."""
        self = super().__new__(cls, tour, length)
        self.problem = problem
        return self

    @property
    def names(self) -> NDArray[Any]:
        """Names, ids or positions of the cities in the order of the tour."""
        known = [getattr(self.problem, what, None) for what in ("names", "ids")]
        labels = next((label for label in known if label is not None), None)
        return self.tour if labels is None else labels[self.tour]

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the tour as `write_route` does to a file of the suffix .csv."""
        write_route(path, self.problem, self.tour, ".csv")  # type: ignore[arg-type]

    def to_geojson(self, path: str | os.PathLike[str]) -> None:
        """Write the tour as `write_route` does to a file of the suffix .geojson."""
        write_route(path, self.problem, self.tour, ".geojson")  # type: ignore[arg-type]

    def __repr__(self) -> str:
        """Length, problem and the first cities."""
        first = ", ".join(map(str, self.tour[:8].tolist())) + (", .." if len(self.tour) > 8 else "")
        return f"Solution(length={self.length:.10g}, tour=[{first}], problem={_words(self.problem)!r})"

    def _repr_html_(self) -> str:
        """A table of what was found and, where the problem has positions, a drawing of the tour."""
        rows = [("problem", _words(self.problem)), ("length", f"{self.length:.10g}")]
        known = getattr(self.problem, "best_known", None)
        if known:
            rows.append(("best known", f"{known:.10g} (gap {100.0 * (self.length / known - 1.0):.3f} %)"))
        rows.append(("tour", _shortened(self.names)))
        return html_table(rows) + svg_of(self.problem, self.tour)


def _words(problem: Any) -> str:
    """Tell a problem in words, its metric among them."""
    return str(problem) if isinstance(problem, TSP) else type(problem).__name__


def _shortened(order: NDArray[Any], most: int = 24) -> str:
    """Tell the first cities of a tour."""
    rest = len(order) - most
    return ", ".join(map(str, order[:most].tolist())) + (f", .. and {rest} more" if rest > 0 else "")


@overload
def solve(
    what: Solvable[R],
    seconds: float | None = None,
    *,
    seed: int | str | None = "auto",
    target: float | None = None,
    algorithm: TourAlgorithm | None = None,
    verbose: bool | None = None,
    start: int | str | None = None,
    end: int | str | None = None,
    fixed_edges: Any = None,
    forbidden_edges: Any = None,
    precedence: Any = None,
    **reading: Any,
) -> R: ...


@overload
def solve(
    what: ArrayLike | os.PathLike[str],
    seconds: float | None = None,
    *,
    seed: int | str | None = "auto",
    target: float | None = None,
    algorithm: TourAlgorithm | None = None,
    verbose: bool | None = None,
    start: int | str | None = None,
    end: int | str | None = None,
    fixed_edges: Any = None,
    forbidden_edges: Any = None,
    precedence: Any = None,
    **reading: Any,
) -> Solution: ...


# How many objectives another problem has, its type does not say; graphs and the like are known by their methods.
@overload
def solve(
    what: Any,
    seconds: float | None = None,
    *,
    seed: int | str | None = "auto",
    target: float | None = None,
    algorithm: TourAlgorithm | None = None,
    verbose: bool | None = None,
    start: int | str | None = None,
    end: int | str | None = None,
    fixed_edges: Any = None,
    forbidden_edges: Any = None,
    precedence: Any = None,
    **reading: Any,
) -> Any: ...


def solve(
    what: Any,
    seconds: float | None = None,
    *,
    seed: int | str | None = "auto",
    target: float | None = None,
    algorithm: TourAlgorithm | None = None,
    verbose: bool | None = None,
    start: int | str | None = None,
    end: int | str | None = None,
    fixed_edges: Any = None,
    forbidden_edges: Any = None,
    precedence: Any = None,
    **reading: Any,
) -> Any:
    """Find a short round trip: ``tour, length = solve(coords, seconds=5)``.

    `what` is an (n, 2) or (n, 3) array of coordinates (Euclidean distances, not rounded), an (n, n) matrix of
    distances with row = from and n > 3, a problem, a name or file as `load_tsp` takes them, or an open file, a
    DataFrame or a graph as `read_cities` takes them. The search ends after
    `seconds` (> 0, 10 where it is left out; set-up counted, compiling not), or as soon as a tour is as short as
    `target`, which is the best known length where one is known, or proven to be the shortest (up to 12 cities at once;
    elsewhere where the algorithm's `lower_bound` is as long). The same seed gives the same tours, as far as the time
    allows; "auto" is 1, and None takes another one each time. `verbose` prints a line a generation. Warns (UserWarning)
    where no tour was found that has all fixed edges and no forbidden ones.

    `start` and `end` make the tour a path between these cities, or, where they are the same, a round trip from there;
    `fixed_edges`, `forbidden_edges` and `precedence` are pairs of cities, as `TSP` takes them. Integers are positions,
    from 0, and texts are names or ids. `reading` are arguments of `read_cities` (`decimal`, `columns`, ..).

    `algorithm` is `GPUMemetic()` unless another one is given, and `GPUMMAS()` for a custom objective (a pymoo problem
    with `D` whose objective is not the tour length). What it was given itself (`seed`, `verbose`, `callback`,
    `termination` ..) holds where it is not given here. Of a termination of its own and `seconds` or `target` give one:
    both are refused.

    Of several objectives (`MultiObjectiveTSP`, or a problem with `D` of shape (k, n, n)) it returns a `Front`: ``tours,
    lengths = solve(problem)``, found by `GPU2PPLS()`; there is no `target`.

    Raises ValueError or TypeError as `TSP`, `load_tsp` and the algorithms do.
    """
    checks.refuse_unknown("solve", reading, [*checks.parameters(solve), *READING], {})
    problem = _problem(what, reading)
    if any(given is not None for given in (start, end, fixed_edges, forbidden_edges, precedence)):
        if not isinstance(problem, TSP):
            raise TypeError(f"start, end and edges are for a TSP, got {type(problem).__name__}")
        problem = constrained(problem, start, end, fixed_edges, forbidden_edges, precedence=precedence)
    if problem.n_obj > 1:
        return _front(problem, seconds, seed, target, algorithm, verbose)
    colony = _algorithm_for(problem, algorithm)
    if isinstance(colony, FrontAlgorithm):
        as_multi_objective(problem)  # which raises, and says what to take
    termination = None
    if not _ends_itself(colony, seconds, target):
        termination = ColonyTermination(
            target,
            stagnation=None,
            n_max_gen=None,
            seconds=_or_usual(seconds),
            stagnation_tours=None,
            proven=True,
        )
    result = _run(problem, colony, termination, seed, verbose)
    broken = _violations(problem, result.X)
    if broken:
        warnings.warn(violations_in_words(broken), stacklevel=3)
    tour = problem.from_home(result.X) if isinstance(problem, TSP) else result.X
    return Solution(tour, float(result.F[0]), problem)


def _front(
    problem: Problem,
    seconds: float | None,
    seed: int | str | None,
    target: float | None,
    algorithm: Any,
    verbose: bool | None,
) -> Front:
    if target is not None:
        raise ValueError(f"target is for one objective, and there are {problem.n_obj}: give seconds")
    if algorithm is not None and not isinstance(algorithm, FrontAlgorithm):
        raise TypeError(f"algorithm must be GPU2PPLS(..) for {problem.n_obj} objectives, got {algorithm!r}")
    known = as_multi_objective(problem)
    colony = GPU2PPLS() if algorithm is None else algorithm
    termination = None
    if not _ends_itself(colony, seconds, target):
        termination = FrontTermination(stagnation=None, seconds=_or_usual(seconds))
    result = _run(problem, colony, termination, seed, verbose)
    return Front(result.X, result.F, known)


def _ends_itself(algorithm: TourAlgorithm, seconds: float | None, target: float | None) -> bool:
    """Whether an algorithm was given a termination. Raises ValueError where the run is to end by another one too."""
    if algorithm.problem is not None:
        raise ValueError(
            "algorithm must be one that has not been set up: it would go on with its own problem"
        )
    if algorithm.termination is None:
        return False
    for name, value in (("seconds", seconds), ("target", target)):
        if value is not None:
            raise ValueError(
                f"{name}={value!r} and the termination that {type(algorithm).__name__} was given both say when to end: "
                "give one of them"
            )
    return True


def _or_usual(seconds: float | None) -> float:
    return _SECONDS if seconds is None else seconds


def _run(
    problem: Problem,
    algorithm: TourAlgorithm,
    termination: ColonyTermination | None,
    seed: int | str | None,
    verbose: bool | None,
) -> Result:
    """Run a copy of an algorithm; what is None, or the seed "auto", is what the algorithm was given."""
    # its own callback: nobody could ask the one of a copy what it has seen
    arguments: dict[str, Any] = {"verbose": verbose, "callback": algorithm.callback}
    if seed != "auto":
        arguments["seed"] = seed
    elif algorithm.seed is None:
        arguments["seed"] = _SEED
    return minimize(problem, algorithm, termination, return_least_infeasible=True, **arguments)


def _violations(problem: Any, tour: NDArray[np.int64]) -> int:
    return int(problem.violations(tour[None])[0]) if isinstance(problem, TSP) else 0


def _problem(what: Any, reading: dict[str, Any]) -> Problem:
    if isinstance(what, (str, os.PathLike)):
        return load_tsp(what, **reading)
    if is_source(what):
        return read_cities(what, **reading)
    for name in reading:
        if name not in ("metric", "matrix", "symmetric") or isinstance(what, Problem):
            raise ValueError(f"{name} has no effect on {type(what).__name__}: leave it out")
    if isinstance(what, Problem):
        return what
    if isinstance(what, Mapping) or not (hasattr(what, "__getitem__") or hasattr(what, "__array__")):
        raise TypeError(
            "what must be an array of coordinates or of distances, a problem, a name or a file, an open file, a "
            f"DataFrame or a graph, got {type(what).__name__}"
        )
    return tsp_of(what, **reading)


def _algorithm_for(problem: Problem, algorithm: TourAlgorithm | None) -> TourAlgorithm:
    """Return the algorithm given, else the one for the kind of objective."""
    if algorithm is None:
        return GPUMemetic(device=devices_for(problem.n_var)) if is_tour_length(problem) else GPUMMAS()
    if not isinstance(algorithm, TourAlgorithm):
        raise TypeError(f"algorithm must be one of this package's, such as GPUMemetic(), got {algorithm!r}")
    return algorithm


class Summary:
    """Runs of one algorithm on one problem with several seeds; printed, it is a table under the problem's line.

    Attributes
    ----------
    results : pymoo's results, in the order of the seeds.
    seeds : (r,) the seeds.
    lengths : (r,) length of each run's best tour.
    violations : (r,) demands that it breaks: fixed edges it lacks, forbidden ones it has, other ends of a path.
    gaps : (r,) percent above the best known length, NaN where none is known or demands are broken.
    generations, tours, seconds : (r,) what each run took, set-up counted and compiling not.
    """

    def __init__(self, seeds: Iterable[int], results: Iterable[Result]) -> None:
        self.results = list(results)
        self.seeds = np.array(list(seeds), dtype=np.int64)
        self.lengths = np.array([float(result.F[0]) for result in self.results])
        known = getattr(self.results[0].problem, "best_known", None)
        self.violations = np.array([_violations(result.problem, result.X) for result in self.results])
        gaps = 100.0 * (self.lengths / known - 1.0) if known else np.full(len(self.results), np.nan)
        self.gaps = np.where(self.violations == 0, gaps, np.nan)
        self.generations = np.array([result.algorithm.n_iter - 1 for result in self.results])
        self.tours = np.array([result.algorithm.evaluator.n_eval for result in self.results])
        self.seconds = np.array([result.exec_time for result in self.results])

    @property
    def best(self) -> Result:
        """The result with the shortest tour, of those that break the fewest demands; of equals the first."""
        result: Result = self.results[int(np.lexsort((self.lengths, self.violations))[0])]
        return result

    def _extremes(self) -> list[tuple[str, float, float]]:
        """Best, mean and worst length and gap of the runs that break the fewest demands."""
        of = self.violations == self.violations.min()
        ways = (("best", np.min), ("mean", np.mean), ("worst", np.max))
        return [(word, float(way(self.lengths[of])), float(way(self.gaps[of]))) for word, way in ways]

    def as_dict(self) -> dict[str, NDArray[Any]]:
        """Columns of one length, as ``pandas.DataFrame`` takes them."""
        return {
            "seed": self.seeds,
            "length": self.lengths,
            "gap_percent": self.gaps,
            "generations": self.generations,
            "tours": self.tours,
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        problem = self.results[0].problem
        lines = [
            _words(problem),
            f"{'seed':>8}  {'length':>12}  {'gap %':>8}  {'generations':>11}  {'tours':>10}  {'seconds':>8}",
        ]
        lines += [
            f"{seed:8d}  {length:12.10g}  {_gap(gap)}  {generations:11d}  {tours:10d}  {seconds:8.2f}"
            for seed, length, gap, generations, tours, seconds in zip(*self.as_dict().values(), strict=True)
        ]
        lines += [f"{word:>8}  {length:12.10g}  {_gap(gap)}" for word, length, gap in self._extremes()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The table, and a drawing of the best tour where the problem has positions."""
        head, *rows = zip(*((name, *column.tolist()) for name, column in self.as_dict().items()), strict=True)
        cells = [[f"{value:.10g}" for value in row] for row in rows]
        cells += [
            [word, f"{length:.10g}", f"{gap:.10g}", "", "", ""] for word, length, gap in self._extremes()
        ]
        problem = self.results[0].problem
        table = html_table(cells, [name.replace("_percent", " %") for name in head], _words(problem))
        return table + svg_of(problem, self.best.X)


def _gap(value: float) -> str:
    return f"{'-':>8}" if np.isnan(value) else f"{value:8.3f}"


def summary(
    problem: Problem,
    algorithm: TourAlgorithm | None = None,
    termination: Any = None,
    seeds: int | Iterable[int] = 10,
    **arguments: Any,
) -> Summary:
    """Run an algorithm (by default as `solve` chooses) once for each seed and return a `Summary`.

    `seeds` is how many, from 1 on, or the seeds themselves. `termination` and `arguments` are those of pymoo's
    `minimize`. Raises ValueError for no seed, TypeError for what is no problem, and what the runs raise.
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a pymoo Problem, such as a TSP, got {problem!r:.80}")
    if problem.n_obj > 1:
        raise ValueError(
            f"summary compares lengths, and {type(problem).__name__} has {problem.n_obj} of them a tour"
        )
    if isinstance(seeds, (int, np.integer)):
        seeds = range(1, checks.integer("seeds", seeds, 1) + 1)
    numbers = [checks.integer("seeds", seed, 0) for seed in seeds]
    if not numbers:
        raise ValueError("seeds must hold at least one seed, got none")
    colony, options = _algorithm_for(problem, algorithm), {"return_least_infeasible": True, **arguments}
    return Summary(
        numbers, [minimize(problem, colony, termination, seed=seed, **options) for seed in numbers]
    )
