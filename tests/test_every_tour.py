"""Asymmetric tours, paths, fixed and forbidden edges: searched as symmetric round trips with edges that stay."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.algorithms.soo.nonconvex.ga import GA
from pymoo.core.callback import Callback
from pymoo.operators.sampling.rnd import PermutationRandomSampling
from pymoo.optimize import minimize

from pymoo_gpuaco import (
    GPUACS,
    GPUAS,
    GPUBWAS,
    GPUEAS,
    GPUMMAS,
    GPURAS,
    TSP,
    ColonyTermination,
    GPU2OptIHC,
    GPUMemetic,
    OpenPath,
    backends,
    load_tsp,
)
from pymoo_gpuaco.candidates.bound import prove_lower_bound
from pymoo_gpuaco.memetic.translated import TranslatedSearch
from pymoo_gpuaco.operators import (
    AntColonySampling,
    AssemblyCrossover,
    DoubleBridgeMutation,
    LocalSearchRepair,
    MergeCrossover,
    NearestNeighbourSampling,
)
from pymoo_gpuaco.problems.pymoo_problems import as_instance
from pymoo_gpuaco.problems.symmetric import symmetric_form
from tests.cpu_window_cases import SmallWindows
from tests.instances import listed_instance

KINDS = [(source, path) for source in ("coordinates", "symmetric", "asymmetric") for path in (False, True)]
IDS = [f"{source}, {'path' if path else 'round trip'}" for source, path in KINDS]


def some_problem(n: int, source: str, path: bool, rng: np.random.Generator) -> TSP:
    """A problem with fixed and forbidden edges or without, some of which no tour can keep to; a path of any ends."""
    arguments: dict[str, Any] = {}
    ends: list[int | None] = [None, None]
    if path:
        start, end = rng.choice(n, 2, replace=False).tolist()
        ends = [start if rng.random() < 0.5 else None, end if rng.random() < 0.5 else None]
        arguments = {"start": ends[0], "end": ends[1]}
    if source == "coordinates":
        arguments["coords"] = rng.random((n, 2)) * 100.0
    else:
        matrix = rng.integers(1, 50, (n, n)).astype(float)
        arguments["matrix"] = matrix if source == "asymmetric" else np.triu(matrix, 1) + np.triu(matrix, 1).T
    order = [city for city in rng.permutation(n).tolist() if city not in ends]
    order = [city for city in (ends[0], *order, ends[1]) if city is not None]
    if rng.random() < 0.6:  # some edges of a tour, for the others to fit
        chosen = rng.choice(n - 1, rng.integers(1, n), replace=False)
        arguments["fixed_edges"] = [
            (order[i + 1], order[i])
            if source != "asymmetric" and rng.random() < 0.5
            else (order[i], order[i + 1])
            for i in chosen
        ]
    if rng.random() < 0.4:
        pairs = [
            (i, j)
            for i, j in itertools.permutations(range(n), 2)
            if rng.random() < 0.15
            and not {(i, j), (j, i)} & {(int(a), int(b)) for a, b in arguments.get("fixed_edges", [])}
        ]
        arguments["forbidden_edges"] = pairs or None
    return OpenPath(**arguments) if path else TSP(**arguments)


def judged(problem: TSP, tours: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Broken constraints (m,) and lengths (m,) of permutations (m, n), edge by edge from the problem's distances."""
    i, j = tours, np.roll(tours, -1, axis=1)
    if isinstance(problem, OpenPath):
        i, j = i[:, :-1], j[:, :-1]
    edges = problem.D[i, j]
    broken = np.isinf(edges).sum(axis=1)
    for a, b in problem.fixed_edges:
        has = (i == a) & (j == b)
        if problem.symmetric:
            has |= (i == b) & (j == a)
        broken += ~has.any(axis=1)
    if problem.start is not None:
        broken += tours[:, 0] != problem.start
    if problem.end is not None:
        broken += tours[:, -1] != problem.end
    return broken, np.where(np.isinf(edges), 0.0, edges).sum(axis=1)


def all_tours(n: int) -> np.ndarray:
    return np.array(list(itertools.permutations(range(n))))


def best_of_all(problem: TSP) -> tuple[int, float]:
    broken, lengths = judged(problem, all_tours(problem.n_cities))
    best = np.lexsort((lengths, broken))[0]
    return int(broken[best]), float(lengths[best])


@pytest.mark.parametrize("way", ["exact", "search"])
@pytest.mark.parametrize(("source", "path"), KINDS, ids=IDS)
def test_the_best_of_all_tours_is_found(source, path, way, monkeypatch):
    if way == "search":
        known = backends.optimal_tour

        def of_fewer_cities(own, form):
            return known(own, form) if (form.instance if form else own).n < 6 else None

        monkeypatch.setattr(backends, "optimal_tour", of_fewer_cities)
    rng = np.random.default_rng(len(source) + path)
    for n in (3, 5, 7, 8) if way == "exact" else (6, 7, 8, 8):
        problem = some_problem(n, source, path, rng)
        n_gen = 1 if way == "exact" else 12
        algorithm = GPUMemetic(backend="auto" if n >= 8 else "cpu")  # windows on CUDA need 8 cities
        found = minimize(problem, algorithm, ("n_gen", n_gen), seed=1, return_least_infeasible=True)
        broken, lengths = judged(problem, found.X[None])
        assert (broken[0], lengths[0]) == (*problem.violations(found.X[None]), pytest.approx(found.F[0]))
        best = best_of_all(problem)
        assert (broken[0], lengths[0]) == (best[0], pytest.approx(best[1])), repr(problem)


@pytest.mark.parametrize(("source", "path"), KINDS, ids=IDS)
def test_any_permutation_has_a_length_and_a_number_of_broken_demands(source, path):
    for seed in range(6):
        problem = some_problem(6, source, path, np.random.default_rng(seed))
        tours = all_tours(6)[::7]
        out = problem.evaluate(tours, return_as_dictionary=True)
        broken, lengths = judged(problem, tours)
        np.testing.assert_allclose(out["F"][:, 0], lengths)
        if problem.constraints is None:
            assert problem.n_ieq_constr == 0
        else:
            np.testing.assert_array_equal(out["G"][:, 0], broken)


@settings(deadline=None, max_examples=80)
@given(st.integers(3, 9), st.sampled_from(KINDS), st.integers(0, 2**32 - 1))
def test_tours_of_a_problem_and_of_its_form_become_each_others(n, kind, seed):
    rng = np.random.default_rng(seed)
    problem = some_problem(n, *kind, rng)
    form = symmetric_form(as_instance(problem))
    if form is None:
        assert problem.symmetric
        assert problem.constraints is None
        return
    partner, far = form.instance.form.partner, form.instance.form.far
    tours = rng.permuted(np.tile(np.arange(n), (5, 1)), axis=1)
    kept = all_tours(min(n, 7))[:: 1 if n < 6 else 11] if n <= 7 else tours
    for tour in np.concatenate([tours, kept]):
        inside = form.to_instance(tour)
        assert sorted(inside) == list(range(form.instance.n))
        joined = np.flatnonzero(partner >= 0)
        place = np.argsort(inside)
        apart = np.abs(place[joined] - place[partner[joined]])
        assert set(apart) <= {1, form.instance.n - 1}  # what must stay is there, whatever came in
        back = form.to_problem(inside)
        assert sorted(back) == list(range(n))
        broken, length = (
            judged(problem, np.stack([tour, back]))[0],
            judged(problem, np.stack([tour, back]))[1],
        )
        used = problem.D[tour, np.roll(tour, -1)][: n if problem.closed else n - 1]
        if broken[0] == np.isinf(used).sum():  # of what the form holds together nothing was broken
            assert broken[0] == broken[1]
            assert length[0] == pytest.approx(length[1])
            if len(form.head) > 1:
                measured = form.instance.tour_length(inside) + form.constant
                assert measured == pytest.approx(length[0] + far * broken[0])
            turned = np.roll(inside[::-1], int(rng.integers(n)))
            assert judged(problem, form.to_problem(turned)[None])[1][0] == pytest.approx(length[0])
            if not problem.closed:
                assert form.to_problem(turned).tolist() in (tour.tolist(), tour[::-1].tolist())
        else:
            assert broken[1] <= np.isinf(problem.D[back, np.roll(back, -1)]).sum()  # and the rest is mended


MATRIX = np.random.default_rng(3).integers(1, 100, (50, 50)).astype(float)
CHAINS = [(0, 1), (2, 1), (2, 3), (10, 20), (30, 20), (40, 41), (42, 43), (5, 49)]  # two and three in a row
ONE_WAY = [(0, 1), (1, 2), (2, 3), (10, 20), (20, 30), (40, 41), (42, 43), (5, 49)]
CITIES = np.random.default_rng(4).random((50, 2))
#: problems of 50 cities
FIFTY = {
    "round trip": lambda: TSP(CITIES, fixed_edges=CHAINS),
    "asymmetric": lambda: TSP(matrix=MATRIX, fixed_edges=ONE_WAY),
    "path": lambda: OpenPath(CITIES, start=3, fixed_edges=CHAINS),
    "path of a matrix": lambda: OpenPath(matrix=MATRIX, start=30, end=40, fixed_edges=ONE_WAY[:4]),
}
fifty = pytest.mark.parametrize("make", FIFTY.values(), ids=FIFTY)


class EveryTour(Callback):
    """Keep all tours that pymoo gets to see."""

    def _update(self, algorithm: Any) -> None:
        self.data.setdefault("tours", []).extend(algorithm.pop.get("X"))


@fifty
def test_every_tour_ever_handed_out_keeps_to_the_demands(make):
    problem, rng = make(), np.random.default_rng(1)
    broken_ones = rng.permuted(np.tile(np.arange(50), (4, 1)), axis=1)
    assert problem.violations(broken_ones).min() > 0
    seen = EveryTour()
    run = minimize(problem, GPUMemetic(n_elites=3), ("n_gen", 4), seed=1, callback=seen)
    assert len(seen.data["tours"]) >= 8
    assert not judged(problem, np.array(seen.data["tours"]))[0].any()
    assert isinstance(run.algorithm.engine, TranslatedSearch)
    assert not judged(problem, run.algorithm.engine.best_tours(5)[0])[0].any()
    started = minimize(problem, GPUMemetic(sampling=broken_ones), ("n_gen", 3), seed=1)
    assert started.G[0] == 0
    for mended in (
        LocalSearchRepair("windows").do(problem, _population(broken_ones), random_state=rng).get("X"),
        MergeCrossover()._do(problem, broken_ones.reshape(2, 2, 50), random_state=rng)[0],
        AssemblyCrossover()._do(problem, broken_ones.reshape(2, 2, 50), random_state=rng).reshape(4, 50),
    ):
        assert not judged(problem, mended)[0].any()


@pytest.mark.parametrize("kind", ["round trip", "path", "asymmetric"])
def test_windows_of_a_part_of_a_tour_break_no_fixed_edge(kind, monkeypatch):
    """As on a CPU above 25,000 cities."""
    small = SmallWindows(whole_up_to=8, window=64, trials=512)
    monkeypatch.setattr(GPUMemetic, "_parameters", lambda _: small)
    rng = np.random.default_rng(2)
    order = rng.permutation(300)
    # far from each other, chains among them
    edges = np.stack([order[:-1], order[1:]], axis=1)[rng.random(299) < 0.4]
    if kind == "asymmetric":
        problem = TSP(matrix=rng.integers(1, 1000, (300, 300)), fixed_edges=edges)
    else:
        problem = (OpenPath if kind == "path" else TSP)(rng.random((300, 2)), fixed_edges=edges)
    seen, greedy = EveryTour(), GPUMemetic(backend="cpu").setup(problem).engine.best_tours()[1][0]
    run = minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 8), seed=1, callback=seen)
    assert not run.algorithm.engine.symmetric_search.device.search.whole
    tours = np.array(seen.data["tours"])
    assert not judged(problem, tours)[0].any()
    lengths = problem.tour_lengths(tours)
    assert lengths[-1] < greedy
    assert not judged(problem, run.algorithm.engine.best_tours(3)[0])[0].any()


def _population(tours: np.ndarray) -> Any:
    from pymoo.core.population import Population

    return Population.new("X", tours)


@pytest.mark.parametrize("algorithm", [GA, NSGA2])
def test_pymoos_own_algorithms_take_the_constraint(algorithm):
    problem = FIFTY["path"]()
    arguments = {
        "pop_size": 6,
        "sampling": PermutationRandomSampling(),
        "crossover": MergeCrossover(),
        "mutation": DoubleBridgeMutation(prob=0.3),
        "repair": LocalSearchRepair("windows"),
        "eliminate_duplicates": False,
    }
    found = minimize(problem, algorithm(**arguments), ("n_gen", 4), seed=1)
    assert np.ravel(found.G).max() == 0
    assert np.ravel(found.F)[0] == pytest.approx(problem.tour_length(np.atleast_2d(found.X)[0]))


# ---- What cannot be, in one line each

XY = CITIES[:6]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: TSP(XY, fixed_edges=[(0, 1), (0, 2), (3, 0)]), r"\(3, 0\) is one too many at city 0"),
        (
            lambda: TSP(matrix=MATRIX[:6, :6], fixed_edges=[(0, 1), (0, 2)]),
            r"\(0, 2\) is one too many at city 0",
        ),
        (lambda: TSP(XY, fixed_edges=[(0, 1), (1, 2), (2, 0)]), r"\(2, 0\) closes a cycle that does not visit all 6"),
        (lambda: TSP(XY, fixed_edges=[(0, 1)], forbidden_edges=[(1, 0)]), r"\(0, 1\) is a forbidden edge too"),
        (lambda: OpenPath(XY, start=0, fixed_edges=[(0, 1), (0, 2)]), "city 0 has too many of them .* path's start"),
        (lambda: OpenPath(XY, end=2, fixed_edges=[(1, 2), (2, 3)]), "city 2 has too many of them .* path's end"),
        (lambda: OpenPath(XY, start=0, end=1, fixed_edges=[(0, 1)]), r"\(1, 0\) closes a cycle"),
        (lambda: OpenPath(XY, start=2, end=2), "end must be another city than start, got 2 for both"),
        (lambda: OpenPath(XY, start=6), r"start must be an integer in \[0, 5\], got 6"),
        (lambda: OpenPath(TSP(XY), "EUC_2D"), "a TSP has its metric: leave it out"),
        (lambda: TSP(XY, fixed_edges=[(0, 6)]), r"different cities in \[0, 5\], got \(0, 6\)"),
        (lambda: TSP(XY, forbidden_edges=[(2, 2)]), r"forbidden_edges must be pairs of different cities .* \(2, 2\)"),
        (lambda: TSP(XY, fixed_edges=[0, 1]), r"of shape \(e, 2\), got shape \(2,\)"),
        (
            lambda: TSP(np.random.default_rng(0).random((20_001, 2)), forbidden_edges=[(0, 1)]),
            "forbidden_edges of coordinates need a matrix: 20000 cities at most, got 20001",
        ),
    ],
)  # fmt: skip
def test_demands_that_no_tour_can_meet_are_refused(make, words):
    with pytest.raises(ValueError, match=words) as refused:
        make()
    assert "\n" not in str(refused.value)


def test_a_fixed_edge_that_comes_twice_counts_once():
    for edges in ([(0, 1), (2, 3), (1, 0)], [(0, 1), (0, 1), (2, 3)]):
        problem = TSP(XY, fixed_edges=edges)
        assert problem.fixed_edges.tolist() == [[0, 1], [2, 3]]
        assert problem.violations([[0, 1, 2, 3, 4, 5], [0, 2, 1, 3, 4, 5]]).tolist() == [0, 2]
    assert OpenPath(XY, start=0, fixed_edges=[(0, 1), (1, 0)]).fixed_edges.tolist() == [[0, 1]]
    directed = TSP(matrix=MATRIX[:6, :6], fixed_edges=[(1, 0), (4, 5), (1, 0)])
    assert directed.fixed_edges.tolist() == [[1, 0], [4, 5]]
    with pytest.raises(ValueError, match=r"\(1, 0\) closes a cycle"):
        TSP(matrix=MATRIX[:6, :6], fixed_edges=[(0, 1), (1, 0)])


def test_a_wrong_kind_of_edge_is_refused():
    with pytest.raises(TypeError, match="fixed_edges must be pairs of city numbers, got dtype float64"):
        TSP(XY, fixed_edges=[(0.0, 1.0)])


@pytest.mark.parametrize(
    "algorithm",
    [
        GPUACS(),
        GPUAS(),
        GPUEAS(),
        GPURAS(),
        GPUBWAS(),
        GPU2OptIHC(),
        GPUMMAS(),
        GPUMMAS(tabu="list"),
    ],
    ids=lambda algorithm: f"{type(algorithm).__name__}",
)
def test_algorithms_that_build_whole_tours_refuse_constraints(algorithm):
    words = r"cannot use paths, precedence, fixed or forbidden edges: use GPUMemetic\(\)"
    with pytest.raises(ValueError, match=words):
        minimize(FIFTY["round trip"](), algorithm, ("n_gen", 1), seed=1)


@pytest.mark.parametrize("operator", [NearestNeighbourSampling(), AntColonySampling()])
def test_samplings_of_whole_tours_refuse_constraints(operator):
    with pytest.raises(ValueError, match="cannot use paths, precedence, fixed or forbidden edges"):
        operator._do(FIFTY["path"](), 2, random_state=np.random.default_rng(0))


def test_a_local_search_of_other_moves_refuses_demands():
    repair = LocalSearchRepair("2opt+oropt")
    with pytest.raises(ValueError, match=r"cannot use paths, .*: use local_search='windows'"):
        repair.do(FIFTY["path"](), _population(np.arange(50)[None]))


# ---- What is proven


@pytest.mark.parametrize(("source", "path"), KINDS, ids=IDS)
def test_the_proven_bound_is_the_best_of_all_tours(source, path):
    rng = np.random.default_rng(7)
    for n in (4, 6, 7):
        problem = some_problem(n, source, path, rng)
        broken, length = best_of_all(problem)
        bound = prove_lower_bound(listed_instance(problem, 3))
        assert bound == (pytest.approx(length) if broken == 0 else None)


@pytest.mark.parametrize(("source", "path"), KINDS, ids=IDS)
def test_no_tour_of_more_cities_is_below_the_bound(source, path):
    problem = some_problem(16, source, path, np.random.default_rng(11))
    while problem.n_forbidden:  # of those there may be too many
        problem = some_problem(16, source, path, np.random.default_rng(len(problem.fixed_edges) + 20))
    found = minimize(problem, GPUMemetic(), ("n_gen", 8), seed=1)
    bound = found.algorithm.lower_bound
    assert 0.75 * found.F[0] <= bound <= found.F[0] * (1 + 1e-9)


def test_a_published_optimum_with_a_fixed_edge(tsplib_dir, tmp_path):
    """linhp318 of TSPLIB is lin318 with an edge from 1 to 214 that stays: 41345 without it, a path between them."""
    text = (tsplib_dir / "lin318.tsp").read_text().replace("EOF", "")
    file = tmp_path / "linhp318.tsp"
    file.write_text(f"{text.replace('lin318', 'linhp318')}\nFIXED_EDGES_SECTION\n1 214\n-1\nEOF\n")
    problem = load_tsp(file)
    assert problem.fixed_edges.tolist() == [[0, 213]]
    assert problem.best_known is None
    tied = 41345 + problem.D[0, 213]
    path = OpenPath(problem.coords[:, :2], "EUC_2D", start=0, end=213)
    for one, length in ((problem, tied), (path, 41345)):
        ended = ColonyTermination(target=length, n_max_gen=40, stagnation=None, seconds=None)
        assert minimize(one, GPUMemetic(), ended, seed=1).F[0] == length


def test_what_a_path_adds_leaves_the_problem_it_is_made_of():
    trip = TSP(matrix=np.ones((4, 4)), fixed_edges=[(0, 1)], names=list("abcd"))
    path = OpenPath(trip, start="b", fixed_edges=[("c", "d")], forbidden_edges=[("a", "c")])
    assert path.fixed_edges.tolist() == [[0, 1], [2, 3]]
    assert np.argwhere(np.isinf(path.matrix)).tolist() == [[0, 2], [2, 0]]
    assert (trip.fixed_edges.tolist(), trip.n_forbidden, np.isinf(trip.matrix).sum()) == ([[0, 1]], 0, 0)
    assert (trip.closed, trip.start, trip.n_ieq_constr) == (True, None, 1)


def test_fixed_edges_may_be_the_whole_path_between_two_ends():
    """The edge that would close the path counts, and then joins all cities to a cycle."""
    places = [[0, 0], [0, 3], [4, 3], [4, 0]]
    path = OpenPath(places, start=0, end=3, fixed_edges=[(0, 1), (1, 2), (2, 3)])
    assert path.violations(np.array([[0, 1, 2, 3], [0, 2, 1, 3]])).tolist() == [0, 2]
    assert path.tour_length(np.arange(4)) == 10.0
    with pytest.raises(ValueError, match="closes a cycle that does not visit all 4 cities"):
        OpenPath(places, start=0, end=2, fixed_edges=[(0, 1), (1, 2)])
