"""Quadratic assignment on the CPU: the problem, its files, the tabu search, bounds, and runs of `GPUMMASQAP`."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from pymoo.algorithms.soo.nonconvex.ga import GA
from pymoo.operators.crossover.ox import OrderCrossover
from pymoo.operators.sampling.rnd import PermutationRandomSampling
from pymoo.optimize import minimize

from pymoo_gpuaco import (
    ALL_ALGORITHMS,
    GPU2PPLS,
    GPUMMASQAP,
    QAP,
    TSP,
    ColonyTermination,
    checkpoint,
    cli,
    load_qap,
    solve,
    summary,
)
from pymoo_gpuaco.algorithms.display import gap_percent
from pymoo_gpuaco.assignment import search
from pymoo_gpuaco.assignment.exact import gilmore_lawler, least_cost
from pymoo_gpuaco.assignment.model import make_model
from pymoo_gpuaco.assignment.parameters import HIGHEST_TRAIL, AssignmentParameters, lowest_trail
from pymoo_gpuaco.assignment.search import AssignmentSearch
from pymoo_gpuaco.backends.cpu import assignment as cpu
from pymoo_gpuaco.operators import SwapMutation
from pymoo_gpuaco.problems import read_placement
from pymoo_gpuaco.runtime.stop import Stop
from tests.assignment_cases import KINDS, best_of_all, matrices


def engine_of(kind, n, **parameters):
    return AssignmentSearch(
        cpu.CpuAssignment(make_model(*matrices(kind, n)), AssignmentParameters(**parameters))
    )


class TestProblem:
    def test_cost_of_a_placement_counts_diagonals_and_linear_costs(self):
        # item 0 at location 2, item 1 at location 0
        problem = QAP([[1, 2], [3, 4]], [[5, 0, 1], [0, 0, 0], [7, 0, 9]], [[0, 0, 10], [20, 0, 0]])
        # f00 d22 + f01 d20 + f10 d02 + f11 d00 + l02 + l10
        assert problem.costs([[2, 0]]).tolist() == [1 * 9 + 2 * 7 + 3 * 1 + 4 * 5 + 10 + 20]
        assert problem.evaluate(np.array([[2, 0, 1]])).tolist() == [[76.0]]
        placement, cost = problem.solution(np.array([2, 0, 1]))
        assert (placement.tolist(), cost) == ([2, 0], 76.0)
        assert str(problem) == "QAP: 2 items for 3 locations"

    def test_result_has_the_fields_of_scipy(self):
        found = solve(QAP(*matrices("symmetric", 5)), seconds=5)
        assert found.col_ind is found.placement
        assert found.fun == found.cost == best_of_all(*matrices("symmetric", 5))

    def test_largest_value(self):
        flow, distance, linear = matrices("asymmetric", 6)
        placement, value = solve(QAP(flow, distance, linear, maximise=True, best_known=1e9), seconds=5)
        assert value == -best_of_all(-flow, distance, -linear)
        problem = QAP(flow, distance, linear, maximise=True)
        assert problem.evaluate(placement[None]).tolist() == [[-value]]

    def test_graphs_are_matched_by_their_edges(self):
        networkx = pytest.importorskip("networkx")
        path = networkx.path_graph(4)
        other = networkx.relabel_nodes(path, {0: "d", 1: "b", 2: "a", 3: "c"})
        placement, value = solve(QAP.from_graphs(path, other), seconds=5)
        assert value == 6  # three edges, each in both directions
        names = list(other.nodes)
        assert [names[k] for k in placement] in (["d", "b", "a", "c"], ["c", "a", "b", "d"])
        assert QAP.from_graphs(np.eye(2), np.ones((3, 3))).n_locations == 3

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([[0, 1]], np.eye(2)), r"flow must be a square matrix, got shape \(1, 2\)"),
            ((np.eye(3), np.eye(2)), "flow has 3 items for 2 locations"),
            ((np.eye(2), [[0, np.nan], [0, 0]]), "distance must be in"),
            ((np.eye(2), np.eye(2), np.eye(3)), r"linear must have shape \(2, 2\)"),
            ((np.eye(2) * 1e16, np.eye(2)), "flow must be in"),
        ],
    )
    def test_refused_arguments(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            QAP(*arguments)

    def test_pymoos_own_algorithm_finds_a_placement(self):
        problem = QAP(*matrices("symmetric", 6))
        genetic = GA(
            pop_size=60,
            sampling=PermutationRandomSampling(),
            crossover=OrderCrossover(),
            mutation=SwapMutation(),
        )
        found = minimize(problem, genetic, ("n_gen", 40), seed=1)
        assert found.F[0] <= 1.05 * best_of_all(*matrices("symmetric", 6))


class TestFiles:
    def test_shipped_instances_have_their_best_known_values(self):
        assert str(load_qap("nug30")) == "QAP nug30: 30 items, best known 6124"
        assert load_qap("bur26a").best_known == 5426670

    def test_a_placement_is_read_in_either_direction(self, tmp_path):
        problem = QAP([[0, 1, 0], [0, 0, 5], [0, 0, 0]], [[0, 3, 1], [2, 0, 9], [4, 1, 0]])
        placement = np.array([1, 2, 0])
        cost = problem.costs(placement[None])[0]  # d12 + 5 d20
        assert cost == 9 + 5 * 4
        for order in (placement, np.argsort(placement)):
            (tmp_path / "a.sln").write_text(f"3 {cost:g}\n{' '.join(map(str, order + 1))}\n")
            assert read_placement(tmp_path / "a.sln", problem).tolist() == [1, 2, 0]
        (tmp_path / "a.sln").write_text("3 28\n1 2 3")
        with pytest.raises(ValueError, match="it states the cost 28, but its permutation costs"):
            read_placement(tmp_path / "a.sln", problem)

    def test_files_of_qaplib(self, tmp_path):
        (tmp_path / "own.dat").write_text("2 50\n0 1\n1 0\n\n0 7\n8 0")
        problem = load_qap(tmp_path / "own.dat")
        assert (problem.flow.tolist(), problem.distance.tolist()) == ([[0, 1], [1, 0]], [[0, 7], [8, 0]])
        (tmp_path / "own.dat").write_text("2\n0 1\n1 0\n\n0 7\n8")
        with pytest.raises(ValueError, match="expected n and two matrices of n x n numbers"):
            load_qap(tmp_path / "own.dat")
        for word in ("1_0", "nan", "one"):
            (tmp_path / "own.dat").write_text(f"2\n0 1\n1 0\n\n0 7\n{word} 0")
            with pytest.raises(ValueError, match=f"'{word}' is not a number"):
                load_qap(tmp_path / "own.dat")
        (tmp_path / "own.dat").write_text("x y z")
        with pytest.raises(ValueError, match="got 3 numbers, the first 'x'"):
            load_qap(tmp_path / "own.dat")
        (tmp_path / "cities.dat").write_text("x y\n0 0\n0 3\n4 0\n")  # a table of cities
        assert solve(tmp_path / "cities.dat", 1).length == 12
        (tmp_path / "nug12.dat").write_text("1 0 0")
        with pytest.warns(UserWarning, match="its best known value is not used"):
            assert load_qap(tmp_path / "nug12.dat").best_known is None
        with pytest.raises(ValueError, match="unknown instance 'nug31'; did you mean nug30"):
            load_qap("nug31")
        with pytest.raises(FileNotFoundError, match="there is no such file"):
            load_qap(tmp_path / "none.dat")


class TestTabuSearch:
    @pytest.mark.parametrize("kind", KINDS)
    def test_changes_and_costs_after_a_thousand_steps(self, kind):
        n = 23
        model = make_model(*matrices(kind, n))
        work, best, cost = cpu.work_of(model), np.zeros(n, np.int32), np.zeros(1)
        run = cpu.search_whole if model.dtype == np.int32 else cpu.search_real
        trails = np.full((n, n), HIGHEST_TRAIL, np.int32)
        run(work, trails, best.copy(), best, cost, 1000, 0, 0, model.noise, 7, 3, np.zeros(1, np.uint8))
        p = work.own[0]
        assert cost[0] == pytest.approx(model.costs(best[None])[0], rel=1e-12)
        flows, distances = model.flows.astype(float), model.distances.astype(float)
        C = model.linear + sum(f @ d[:, p].T for f, d in zip(flows, distances, strict=True))
        tolerance = 1e-9 * np.abs(C).max()
        np.testing.assert_allclose(work.costs, C, atol=tolerance)
        # the next step would apply the last swap
        changes = work.changes.astype(float)
        for x, _, y, _ in work.lines[: len(flows)].astype(float):
            changes -= (x[:, None] - x) * (y[:, None] - y)
        now = model.costs(p[None])[0]
        for r in range(n):
            for s in range(r):
                q = p.copy()
                q[[r, s]] = q[[s, r]]
                assert changes[r, s] == pytest.approx(model.costs(q[None])[0] - now, abs=tolerance)

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("n", [1, 2, 3, 7])
    def test_few_items_are_placed_best(self, kind, n):
        engine = engine_of(kind, n, n_ants=4, n_colonies=1)
        engine.search(5)
        placement, cost = engine.best
        problem = QAP(*matrices(kind, n))
        assert cost == pytest.approx(best_of_all(*matrices(kind, n)), rel=1e-12)
        assert problem.costs(placement[None])[0] == pytest.approx(cost, rel=1e-12)

    def test_numbers_of_32_bits_are_used_while_no_change_overflows(self):
        flow, distance, linear = matrices("symmetric", 12)
        np.fill_diagonal(flow, 0)
        np.fill_diagonal(distance, 0)
        # an entry of C is at most a sum of products, the largest with the largest; a change is at most four of these
        largest = (np.sort(2 * flow) @ np.sort(distance).T).max()
        most = int((2**31 - 2) // (4 * largest))
        found = {}
        for factor in (1, most, most + 1):
            model = make_model(factor * flow, distance, linear)
            assert model.dtype == (np.int32 if factor <= most else np.float64)
            engine = AssignmentSearch(cpu.CpuAssignment(model, AssignmentParameters(n_colonies=1)))
            engine.search(3)
            found[factor] = engine.best[0].tolist(), engine.best[1] / factor
        assert found[1] == found[most] == found[most + 1]

    def test_items_without_flow_are_never_swapped_with_each_other(self):
        model = make_model(*matrices("twins", 12))
        assert model.kinds.tolist() == [0, 1, 2, 3, 4, 5, *[6] * 6]
        asymmetric = make_model(np.array([[0, 1.0], [0, 0]]), np.array([[0, 1.0], [3, 0]]), np.zeros((2, 2)))
        assert asymmetric.kinds.tolist() == [0, 1]

    def test_random_matrices_have_no_structure(self):
        random = np.random.default_rng(3)
        numbers = random.random((30, 30))
        places = random.random((30, 2))
        distances = np.abs(places[:, None] - places).sum(axis=2)
        sparse = numbers * (random.random((30, 30)) < 0.5)
        both = [make_model(numbers, other, 0 * numbers) for other in (numbers.T, distances, sparse)]
        assert [model.structured for model in both] == [False, True, True]
        usual = AssignmentParameters().tabu_iterations_of
        assert [usual(30, *case) for case in ((False, 8), (True, 64), (True, 63))] == [3000, 600, 300]

    def test_placements_are_permutations_after_a_stop(self):
        engine = engine_of("symmetric", 60, n_ants=3, n_colonies=2)
        engine.stop.interrupted = True
        engine.search(1)
        assert np.sort(engine.best[0]).tolist() == list(range(60))
        assert engine.n_built == len(engine.costs) == 0
        assert np.isinf(engine.export_state()["costs"]).all()


class TestColonies:
    def test_trails_stay_within_their_limits_and_a_stagnating_colony_restarts(self):
        engine = engine_of("symmetric", 8, n_ants=2, n_colonies=1, restart_after=2)
        seen = []
        for key in range(4):
            # an iteration at a time: a generation of 8 items has several
            step = search.Step(key, 50, 0, 0)
            engine.device.iterate(step, Stop())
            seen.append(engine.device.colonies().trails.copy())
        assert seen[0].min() == HIGHEST_TRAIL - (HIGHEST_TRAIL * round(0.2 * 65536) >> 16)
        assert (seen[0] == HIGHEST_TRAIL).sum() == 8
        assert min(trails.min() for trails in seen) >= lowest_trail(8)
        # found in the first iteration, not better in two, restarted after the third
        assert (seen[3] == HIGHEST_TRAIL).all()
        assert np.isinf(engine.device.colonies().costs).all()

    def test_perturbed_starts_differ_from_the_best_in_a_few_items(self):
        engine = engine_of("symmetric", 40, n_ants=6, n_colonies=1, start="perturbed", tabu_iterations=1)
        step = search.Step(1, 0, 0, 0)
        engine.device.iterate(step, Stop())
        best = engine.device.colonies().best[0].copy()
        engine.device.iterate(search.Step(2, 0, 8, 0), Stop())
        moved = [(engine.device.placement(ant) != best).sum() for ant in range(6)]
        assert 2 <= min(moved) <= max(moved) <= 16

    def test_equal_placements_for_any_number_of_threads(self, monkeypatch):
        states = []
        for threads in ("1", "3"):
            monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
            engine = engine_of("one-sided", 14, n_ants=5, n_colonies=2)
            for key in range(3):
                engine.search(key)
            states.append(engine.export_state())
        assert all(np.array_equal(states[0][name], states[1][name]) for name in states[0])

    def test_states_of_other_shapes_are_refused(self):
        engine = engine_of("symmetric", 8, n_colonies=1)
        state = engine.export_state()
        for name, wrong in [
            ("trails", state["trails"] + 1),
            ("best", state["best"][:, :7]),
            ("costs", np.zeros(1)),
        ]:
            with pytest.raises(ValueError, match=f"'{name if name != 'costs' else 'best'}'"):
                engine.import_state({**state, name: wrong})


class TestBounds:
    @pytest.mark.parametrize("kind", KINDS)
    def test_least_cost_and_bound(self, kind):
        flow, distance, linear = matrices(kind, 7)
        least = best_of_all(flow, distance, linear)
        assert least_cost(flow, distance, linear, Stop()) == pytest.approx(least, rel=1e-12)
        assert gilmore_lawler(flow, distance, linear) <= least
        part = best_of_all(flow[:3, :3], distance, linear[:3])
        assert least_cost(flow[:3, :3].copy(), distance, linear[:3], Stop()) == pytest.approx(part, rel=1e-12)

    def test_bound_of_equal_distances_is_the_cost(self):
        # every placement costs the sum of the flows
        flow = matrices("symmetric", 9)[0]
        np.fill_diagonal(flow, 0)
        assert gilmore_lawler(flow, np.ones((9, 9)) - np.eye(9), np.zeros((9, 9))) == flow.sum()


class TestRuns:
    def test_a_run_ends_at_the_proof_of_few_items_and_at_the_best_known_value(self):
        result = minimize(QAP(*matrices("asymmetric", 6)), GPUMMASQAP(backend="cpu"), seed=1)
        assert result.algorithm.termination.reason.startswith("proof")
        assert result.F[0] == best_of_all(*matrices("asymmetric", 6))
        placement, cost = solve("nug12", seconds=20)
        assert (cost, sorted(placement.tolist())) == (578, list(range(12)))
        assert summary(load_qap("nug12"), seeds=2).lengths.tolist() == [578, 578]

    def test_ask_and_tell_and_files_continue_a_run(self, tmp_path):
        problem, given = QAP(*matrices("symmetric", 30)), np.arange(30)[None]
        arguments = {"backend": "cpu", "n_colonies": 2, "sampling": given, "start": "perturbed"}
        whole = minimize(problem, GPUMMASQAP(**arguments), ("n_gen", 5), seed=3)
        algorithm = GPUMMASQAP(**arguments).setup(problem, termination=("n_gen", 5), seed=3)
        for _ in range(3):
            rows = algorithm.ask()
            algorithm.evaluator.eval(problem, rows)
            algorithm.tell(infills=rows)
        checkpoint.save(algorithm, tmp_path / "run")
        for resumed in (pickle.loads(pickle.dumps(algorithm)), checkpoint.load(tmp_path / "run")):
            resumed.run()
            assert np.array_equal(resumed.opt[0].X, whole.X)
            assert resumed.opt[0].F == whole.F
        assert whole.algorithm.evaluator.n_eval == 1 + 4 * 2 * 8 * 2  # 30 items: 2 iterations a generation

    def test_command_line_writes_a_placement(self, tmp_path, capsys):
        files = [str(tmp_path / name) for name in ("{instance}-{seed}.sln", "runs.csv")]
        options = ["--backend", "cpu", "--seeds", "2", "--tour", files[0], "--stats", files[1]]
        assert cli.main(["solve", "nug12", "--set", "n_ants=4", *options]) == 0
        assert "QAP nug12: 12 items, best known 578" in capsys.readouterr().out
        for seed in (1, 2):
            placement = read_placement(tmp_path / f"nug12-{seed}.sln", load_qap("nug12"))
            assert load_qap("nug12").costs(placement[None]).tolist() == [578]
        assert len((tmp_path / "runs.csv").read_text().splitlines()) == 3
        assert cli.main(["solve", "nug12", "--json"]) == 0
        (run,) = json.loads(capsys.readouterr().out)["runs"]
        assert (run["length"], sorted(run["placement"])) == (578, list(range(1, 13)))
        for wrong in (["nug12", "pcb442"], ["nug12", "--open"], ["nug12", "--set", "rho=2"]):
            assert cli.main(["solve", *wrong]) == 2
        for wrong in (
            ["--json", "--tour", "-"],
            ["--tour", "{x}.sln"],
            ["--tour", str(tmp_path / "no" / "a.sln")],
        ):
            assert cli.main(["solve", "nug12", *wrong]) == 2

    def test_other_algorithms_name_the_one_for_it(self):
        problem = QAP(*matrices("symmetric", 5))
        for algorithm in (*ALL_ALGORITHMS.values(), GPU2PPLS):
            with pytest.raises(TypeError, match=r"GPUMMASQAP"):
                algorithm(backend="cpu").setup(problem)
        with pytest.raises(TypeError, match="GPUMMASQAP takes a QAP, got TSP"):
            GPUMMASQAP().setup(TSP(np.random.default_rng(1).random((5, 2))))

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"start": "random"}, "start must be one of 'trails', 'perturbed'"),
            ({"tabu_iterations": 0}, r"tabu_iterations must be an integer in \[1, 55000\]"),
            ({"n_colonies": 0}, "n_colonies must be an integer in"),
            ({"rho": 0}, r"rho must be in \(0, 1\]"),
        ],
    )
    def test_refused_arguments(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            GPUMMASQAP(**arguments)

    def test_a_deadline_ends_a_generation(self):
        problem = QAP(*matrices("symmetric", 150))
        result = minimize(
            problem, GPUMMASQAP(backend="cpu", n_ants=100), ColonyTermination(seconds=1), seed=1
        )
        assert np.sort(result.X).tolist() == list(range(150))
        assert result.F[0] == problem.costs(result.X[None])[0]


def test_gaps_of_a_maximised_value_are_above_zero() -> None:
    """The best known value 40 is -40 as F; a value of 30 is a quarter of it away."""
    assert gap_percent(-30.0, -40.0) == gap_percent(50.0, 40.0) == 25.0
    problem = QAP([[0, 1], [1, 0]], [[0, 15], [15, 0]], maximise=True, best_known=40.0)
    assert summary(problem, GPUMMASQAP(backend="cpu"), ("n_gen", 1), seeds=[1]).gaps.tolist() == [25.0]


def test_an_exported_state_does_not_follow_its_engine() -> None:
    algorithm = GPUMMASQAP(backend="cpu").setup(load_qap("nug12"), termination=("n_gen", 9), seed=1)
    algorithm.next()
    state = algorithm.engine.export_state()
    before = {name: array.copy() for name, array in state.items()}
    algorithm.engine.import_state(state)
    algorithm.next()
    assert all(np.array_equal(before[name], array) for name, array in state.items())


def test_target_of_a_maximised_value_is_that_value() -> None:
    """The largest value is 2 * 3 * 5 = 30; in F, which is minimised, a target of 40 is -40."""
    problem = QAP([[0, 3, 0], [3, 0, 0], [0, 0, 0]], [[0, 5, 1], [5, 0, 1], [1, 1, 0]], maximise=True)
    targets: list[float] = []
    algorithm = GPUMMASQAP(backend="cpu", callback=lambda run: targets.append(run.termination.target))
    assert solve(problem, 5.0, target=40.0, algorithm=algorithm).cost == 30.0
    assert set(targets) == {-40.0}
