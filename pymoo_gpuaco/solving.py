"""`solve`: a tour in one call; `summary`: runs with several seeds."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.core.result import Result
from pymoo.optimize import minimize

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms import GPU2PPLS, GPUMMAS, GPUMMASQAP, GPUMemetic
from pymoo_gpuaco.algorithms.display import gap_percent
from pymoo_gpuaco.algorithms.permutation import PermutationAlgorithm
from pymoo_gpuaco.algorithms.ppls import FrontAlgorithm
from pymoo_gpuaco.algorithms.termination import ColonyTermination, FrontTermination
from pymoo_gpuaco.backends import devices_for
from pymoo_gpuaco.candidates.bound import is_proven
from pymoo_gpuaco.problems.constraints import violations_in_words
from pymoo_gpuaco.problems.datasets import load_tsp
from pymoo_gpuaco.problems.multi_objective import Front, as_multi_objective
from pymoo_gpuaco.problems.pymoo_problems import evaluates_length
from pymoo_gpuaco.problems.qap import QAP
from pymoo_gpuaco.problems.qaplib import is_qap, load_qap
from pymoo_gpuaco.problems.reading import is_source, read_cities, tsp_of
from pymoo_gpuaco.problems.table import Reading, ReadingOptions
from pymoo_gpuaco.problems.tsp import TSP, constrained, with_missing
from pymoo_gpuaco.problems.writing import write_route

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Solution", "Summary", "solve", "summary"]

R = TypeVar("R", covariant=True)
_SECONDS, _SEED = 10.0, 1  # defaults


class Solvable(Protocol[R]):
    """A problem whose type determines the result type of `solve`.

    For mypy a subclass of pymoo's untyped Problem may be any class, and only this method distinguishes subclasses.
    """

    def _solved_as(self) -> R: ...


class _Pair(NamedTuple):
    tour: NDArray[np.int64]
    length: float


class Solution(_Pair):
    """Result of `solve`: ``tour, length = solve(..)``.

    Attributes
    ----------
    tour : (n,) cities in order, from city 0 on; for an `OpenPath` from its first to its last city.
    length : length of the tour, under the metric of the problem.
    problem : the problem.
    names : (n,) names of the cities in the order of the tour; without names, their ids or positions.
    seconds : duration of the run, without compilation.
    n_eval : number of tours that were built.
    reason : why the run ended; None with a termination of pymoo.
    lower_bound : proven lower bound of the length, if the run has computed it; otherwise None.
    proven : True if no tour is shorter.
    gap : percent by which the length exceeds the lower bound; None without a bound.
    violations : missing fixed edges, forbidden edges, wrong ends of a path, and pairs in the wrong order.
    """

    problem: Problem | None
    seconds: float | None = None
    n_eval: int | None = None
    reason: str | None = None
    lower_bound: float | None = None
    proven: bool = False
    violations: int = 0

    def __new__(
        cls, tour: NDArray[np.int64], length: float, problem: Problem | None = None, **run: Any
    ) -> Solution:
        """Create the pair with its problem and what the ``run`` has found out."""
        self = super().__new__(cls, tour, length)
        self.problem = problem
        self.__dict__.update(run)
        return self

    @property
    def gap(self) -> float | None:
        """Percent by which the length exceeds the lower bound."""
        if self.proven or not self.lower_bound:
            return 0.0 if self.proven else None
        return float(gap_percent(self.length, self.lower_bound))

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes without the problem, as plain lists and numbers, for JSON."""
        facts = ("length", "seconds", "n_eval", "reason", "lower_bound", "proven", "gap", "violations")
        cities = {"tour": self.tour.tolist(), "names": np.asarray(self.names).tolist()}
        return {**cities, **{name: getattr(self, name) for name in facts}}

    @property
    def names(self) -> NDArray[Any]:
        """Names, ids or positions of the cities in the order of the tour."""
        known = [getattr(self.problem, what, None) for what in ("names", "ids")]
        labels = next((label for label in known if label is not None), None)
        return self.tour if labels is None else labels[self.tour]

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the tour to a CSV file, see `write_route`."""
        write_route(path, self.problem, self.tour, ".csv")  # type: ignore[arg-type]

    def to_geojson(self, path: str | os.PathLike[str]) -> None:
        """Write the tour to a GeoJSON file, see `write_route`."""
        write_route(path, self.problem, self.tour, ".geojson")  # type: ignore[arg-type]

    def __repr__(self) -> str:
        """Return length, first cities and problem."""
        first = ", ".join(map(str, self.tour[:8].tolist())) + (", .." if len(self.tour) > 8 else "")
        return f"Solution(length={self.length:.10g}, tour=[{first}], problem={_words(self.problem)!r})"


def _words(problem: Any) -> str:
    """Describe a problem with its metric."""
    return str(problem) if isinstance(problem, (TSP, QAP)) else type(problem).__name__


class _Options(ReadingOptions, total=False):
    """Keywords of `solve`: its own, and those of `read_cities`."""

    seed: int | str | None
    target: float | None
    algorithm: PermutationAlgorithm | None
    verbose: bool | None
    threads: int | None
    sampling: Any
    start: int | str | None
    end: int | str | None
    fixed_edges: Any
    forbidden_edges: Any
    precedence: Any


@overload
def solve(what: Solvable[R], seconds: float | None = None, **options: Unpack[_Options]) -> R: ...


@overload
def solve(
    what: ArrayLike | os.PathLike[str], seconds: float | None = None, **options: Unpack[_Options]
) -> Solution: ...


# The types of other problems do not determine the number of objectives; graphs and the like are known by their methods.
@overload
def solve(what: Any, seconds: float | None = None, **options: Unpack[_Options]) -> Any: ...


def solve(
    what: Any,
    seconds: float | None = None,
    *,
    seed: int | str | None = "auto",
    target: float | None = None,
    algorithm: PermutationAlgorithm | None = None,
    verbose: bool | None = None,
    threads: int | None = None,
    sampling: Any = None,
    start: int | str | None = None,
    end: int | str | None = None,
    fixed_edges: Any = None,
    forbidden_edges: Any = None,
    precedence: Any = None,
    **reading: Any,
) -> Any:
    """Find a short round trip: ``tour, length = solve(coords, seconds=5)``.

    For a `QAP` it is a placement, ``placement, cost = solve(problem)``, see `Assignment`. Otherwise returns a
    `Solution`, or with several objectives (`MultiObjectiveTSP`, or a problem with `D` of shape (k, n, n)) a
    `Front`: ``tours, lengths = solve(problem)``.

    what : (n, 2) or (n, 3) coordinates (Euclidean distances, not rounded), an (n, n) matrix with row = from and n > 3,
        a problem, a name or file for `load_tsp` or `load_qap`, or an open file, a DataFrame or a graph for
        `read_cities`.
    seconds : time limit, > 0, default 10; it counts set-up, but no compilation. A run also ends at a tour that is
        proven to be the shortest.
    seed : "auto" is 1, None draws a new one. Results of a time limit vary with the speed of the machine;
        those of `n_gen` repeat.
    target : a tour of this length or shorter ends the run; default: the best known length, if any. Not with several
        objectives.
    algorithm : default `GPUMemetic()`; `GPUMMAS()` for a custom objective, `GPU2PPLS()` for several objectives,
        `GPUMMASQAP()` for a `QAP`. Its own `seed`, `verbose`, `callback` and `termination` hold unless they are given
        here; its termination excludes `seconds` and `target`.
    verbose : True prints a line for each generation.
    threads : of the run, in [1, 1024]; None: one a core. Calls in progress in one process share its cores.
    sampling : tours to start from: a `Solution` of an earlier call, a tour of positions or names, or what the classes
        take. Cities that the tour lacks are inserted at their cheapest places; those of a `Solution` that the problem
        lacks are left out.
    start, end : first and last city of a path; the same city makes a round trip from there. Integers are positions,
        from 0, and texts are names or ids.
    fixed_edges, forbidden_edges, precedence : pairs of cities, as `TSP` takes them.
    reading : arguments of `read_cities`, such as `decimal` or `columns`.

    Raises ValueError or TypeError like `TSP`, `load_tsp` and the algorithms. Warns (UserWarning) if no tour with all
    fixed edges and no forbidden ones was found.
    """
    Reading("solve", reading, *checks.parameters(solve))
    problem = _problem(what, reading)
    if any(given is not None for given in (start, end, fixed_edges, forbidden_edges, precedence)):
        if not isinstance(problem, TSP):
            raise TypeError(f"start, end and edges require a TSP, got {type(problem).__name__}")
        problem = constrained(problem, start, end, fixed_edges, forbidden_edges, precedence=precedence)
    several = problem.n_obj > 1
    if several and target is not None:
        raise ValueError(f"target requires one objective, got {problem.n_obj}; use seconds")
    if target is not None and isinstance(problem, QAP) and problem.maximise:
        target = -checks.real("target", target)  # F is the negative of the value
    searched = _algorithm_for(problem, algorithm)
    if isinstance(searched, FrontAlgorithm):
        multi_objective = as_multi_objective(problem)  # raises for one objective, with the alternative
    termination = _termination(searched, problem, seconds, target)
    # the original callback, so that the user can read it after the run
    arguments: dict[str, Any] = {"verbose": verbose, "callback": searched.callback}
    if threads is not None:
        arguments["threads"] = threads
    if sampling is not None:
        arguments["sampling"] = _sampling(problem, sampling)
    if seed != "auto":
        arguments["seed"] = seed
    elif searched.seed is None:
        arguments["seed"] = _SEED
    result = minimize(problem, searched, termination, return_least_infeasible=True, **arguments)
    if several:
        return Front(result.X, result.F, multi_objective)
    if isinstance(problem, QAP):
        return problem.solution(result.X)
    found = solution_of(problem, result, result.algorithm)
    if found.violations:
        warnings.warn(violations_in_words(found.violations), stacklevel=2)
    return found


def solution_of(problem: Problem, result: Result, run: Any) -> Solution:
    """Return the tour of the algorithm ``run`` with one objective, and what it has found out."""
    broken = _violations(problem, result.X)
    bound = None if run._custom_objective else run.bound_in_time(0.0)
    return Solution(
        problem.from_home(result.X) if isinstance(problem, TSP) else result.X,
        float(result.F[0]),
        problem,
        seconds=float(result.exec_time),
        n_eval=int(run.evaluator.n_eval),
        reason=getattr(run.termination, "reason", None),
        lower_bound=bound,
        proven=not broken and bound is not None and is_proven(run.instance, result.X, bound),
        violations=broken,
    )


def _sampling(problem: Problem, known: Any) -> Any:
    """Return known tours in the form that algorithms take; a tour of other cities becomes one of the problem."""
    is_tour = isinstance(known, Solution) or (
        isinstance(known, (list, tuple, np.ndarray))
        and not isinstance(known, Population)
        and not any(np.ndim(city) for city in known)
    )
    if not is_tour or not isinstance(problem, TSP):
        return known
    if isinstance(known, Solution):
        positions = _positions_now(problem, known)
    else:
        positions = np.array([problem.city(city, "sampling") for city in known], np.int64)
    if len(positions) == 0 or len(np.unique(positions)) < len(positions):
        raise ValueError(f"sampling must visit one or more cities, each once, got {known!r:.80}")
    return with_missing(problem, positions)[None]


def _positions_now(problem: TSP, known: Solution) -> NDArray[np.int64]:
    """Return a solution's tour as positions in another problem, without cities that it lacks.

    Cities are the same if their names are, otherwise if their coordinates or ids are.
    """
    before, n = known.problem, problem.n_cities
    for what in ("names", "coords", "ids"):
        old, new = (getattr(one, what, None) for one in (before, problem))
        if old is None or new is None or len(old) == 0 or len(new) == 0:
            continue
        places: dict[Any, list[int]] = {}
        for position, key in enumerate(np.asarray(new).tolist()):
            places.setdefault(str(key), []).append(position)
        found = [places.get(str(key), []) for key in np.asarray(old)[known.tour].tolist()]
        return np.array([where.pop(0) for where in found if where], np.int64)
    if len(known.tour) > n:
        raise ValueError(
            f"sampling has {len(known.tour)} cities, the problem {n}, and without names nothing tells which cities "
            "have left: give a tour of positions in the problem"
        )
    return known.tour


def limits(
    problem: Problem,
    seconds: float | None,
    target: float | None = None,
    stagnation: int | None = None,
    generations: int | None = None,
) -> ColonyTermination:
    """Return a termination by the given limits alone; with one objective also at a proven optimum."""
    if problem.n_obj > 1:
        return FrontTermination(stagnation, generations, seconds)
    return ColonyTermination(target, stagnation, generations, seconds, stagnation_tours=None, proven=True)


def _termination(
    searched: PermutationAlgorithm, problem: Problem, seconds: float | None, target: float | None
) -> ColonyTermination | None:
    """Return the termination of `solve`, or None if the algorithm has one."""
    if searched.termination is None:
        return limits(problem, _SECONDS if seconds is None else seconds, target)
    for name, value in (("seconds", seconds), ("target", target)):
        if value is not None:
            raise ValueError(
                f"{name}={value!r} conflicts with the termination of {type(searched).__name__}: give one of them"
            )
    return None


def _violations(problem: Any, tour: NDArray[np.int64]) -> int:
    return int(problem.violations(tour[None])[0]) if isinstance(problem, TSP) else 0


def _problem(what: Any, reading: dict[str, Any]) -> Problem:
    if isinstance(what, (str, os.PathLike)) and is_qap(what):
        return load_qap(what)
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


def _algorithm_for(problem: Problem, algorithm: PermutationAlgorithm | None) -> PermutationAlgorithm:
    """Return the given algorithm, which must be new, or the default for the objectives."""
    several = problem.n_obj > 1
    if algorithm is None and several:
        return GPU2PPLS()
    if algorithm is None and isinstance(problem, QAP):
        return GPUMMASQAP()
    if algorithm is None:
        return GPUMemetic(device=devices_for(problem.n_var)) if evaluates_length(problem) else GPUMMAS()
    if several and not isinstance(algorithm, FrontAlgorithm):
        raise TypeError(f"algorithm must be GPU2PPLS(..) for {problem.n_obj} objectives, got {algorithm!r}")
    if not isinstance(algorithm, PermutationAlgorithm):
        raise TypeError(f"algorithm must be one of this package, such as GPUMemetic(), got {algorithm!r}")
    if algorithm.problem is not None:
        raise ValueError("algorithm must not be set up: it would continue with its own problem")
    return algorithm


class Summary:
    """Runs of one algorithm on one problem with several seeds; ``print`` shows a table.

    Attributes
    ----------
    results : results of pymoo, in the order of the seeds.
    seeds : (r,) the seeds.
    lengths : (r,) length of the best tour of each run.
    violations : (r,) its violations: missing fixed edges, forbidden edges, wrong ends of a path.
    gaps : (r,) percent above the best known length; NaN if it is unknown or constraints are violated.
    generations, tours, seconds : (r,) cost of each run, with set-up and without compilation.
    stopped_by : (r,) texts, the reasons why the runs ended; "" with a termination of pymoo.
    """

    def __init__(self, seeds: Iterable[int], results: Iterable[Result]) -> None:
        self.results = list(results)
        self.seeds = np.array(list(seeds), dtype=np.int64)
        self.lengths = np.array([float(result.F[0]) for result in self.results])
        known = getattr(self.results[0].problem, "best_known", None)
        self.violations = np.array([_violations(result.problem, result.X) for result in self.results])
        gaps = gap_percent(self.lengths, known) if known else np.full(len(self.results), np.nan)
        self.gaps = np.where(self.violations == 0, gaps, np.nan)
        self.generations = np.array([result.algorithm.n_iter - 1 for result in self.results])
        self.tours = np.array([result.algorithm.evaluator.n_eval for result in self.results])
        self.seconds = np.array([result.exec_time for result in self.results])
        ends = [result.algorithm.termination for result in self.results]
        self.stopped_by = np.array([getattr(end, "reason", None) or "" for end in ends], dtype=object)

    @property
    def best(self) -> Result:
        """Result with the fewest violations, then with the shortest tour; ties: the first."""
        result: Result = self.results[int(np.lexsort((self.lengths, self.violations))[0])]
        return result

    def as_dict(self) -> dict[str, NDArray[Any]]:
        """Return columns of equal length, for ``pandas.DataFrame``."""
        return {
            "seed": self.seeds,
            "length": self.lengths,
            "violations": self.violations,
            "gap_percent": self.gaps,
            "generations": self.generations,
            "tours": self.tours,
            "seconds": self.seconds,
            "stopped_by": self.stopped_by,
        }

    def __str__(self) -> str:
        columns = self.as_dict()
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return "\n".join([_words(self.results[0].problem), *table_of_runs(rows)])

    __repr__ = __str__


def table_of_runs(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return lines for the runs of one problem, and for best, mean and worst of those with the fewest violations."""
    titles = f"{'seed':>8}  {'length':>12}  {'gap %':>8}  {'generations':>11}  {'tours':>10}  {'seconds':>8}"
    lines = [titles + "  stopped by" * any(row["stopped_by"] for row in rows)]
    for row in rows:
        numbers = f"{row['seed']:8d}  {row['length']:12.10g}  {_gap(row['gap_percent'])}"
        cost = f"{row['generations']:11d}  {row['tours']:10d}  {row['seconds']:8.2f}"
        lines.append(f"{numbers}  {cost}  {row['stopped_by']}".rstrip())
    fewest = min(row["violations"] for row in rows)
    kept = [row for row in rows if row["violations"] == fewest]
    for word, way in (("best", min), ("mean", np.mean), ("worst", max)):
        gaps = [row["gap_percent"] for row in kept]
        gap = None if None in gaps else way(gaps)
        lines.append(f"{word:>8}  {way([row['length'] for row in kept]):12.10g}  {_gap(gap)}")
    return lines


def _gap(value: float | None) -> str:
    return f"{'-':>8}" if value is None or np.isnan(value) else f"{value:8.3f}"


def summary(
    problem: Problem,
    algorithm: PermutationAlgorithm | None = None,
    termination: Any = None,
    seeds: int | Iterable[int] = 10,
    **arguments: Any,
) -> Summary:
    """Run an algorithm (default: as in `solve`) once for each seed and return a `Summary`.

    `seeds` is their number, for seeds from 1 on, or a list of seeds. `termination` and `arguments` are those of pymoo's
    `minimize`. Raises ValueError without seeds, TypeError for an invalid problem, and the errors of the runs.
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be a pymoo Problem, such as a TSP, got {problem!r:.80}")
    if problem.n_obj > 1:
        raise ValueError(f"summary requires one objective, got {problem.n_obj} of {type(problem).__name__}")
    if isinstance(seeds, (int, np.integer)):
        seeds = range(1, checks.integer("seeds", seeds, 1) + 1)
    numbers = [checks.integer("seeds", seed, 0) for seed in seeds]
    if not numbers:
        raise ValueError("seeds must have at least one seed, got none")
    colony, options = _algorithm_for(problem, algorithm), {"return_least_infeasible": True, **arguments}
    results = []
    for seed in numbers:
        results.append(minimize(problem, colony, termination, seed=seed, **options))
        results[-1].algorithm.release_engine()  # before the next run needs the memory
    return Summary(numbers, results)
