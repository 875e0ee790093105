"""Input of an engine is checked before compiled code reads it, and refused input changes nothing."""

import numpy as np
import pytest
from pymoo.core.population import Population

from pymoo_gpuaco.backends import make_faco, make_improver, make_search
from pymoo_gpuaco.colony.faco import FacoParameters
from pymoo_gpuaco.colony.parameters import LocalSearch
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.operators import LocalSearchRepair
from pymoo_gpuaco.problems import TSP
from tests.engine_cases import BACKENDS, assert_refuses_spoilt, climbers, cloud, colony, memetic
from tests.instances import listed_instance

N = 12
GOOD = np.arange(N)
BAD_ROWS = {
    "a city twice": np.r_[0, GOOD[:-1]],
    "a city of a million": np.r_[GOOD[:-1], 10**6],
    "a negative city": np.r_[GOOD[:-1], -1],
    "half a city": GOOD + 0.5,
    "too few": GOOD[:-1],
}

every_bad_row = pytest.mark.parametrize("row", BAD_ROWS.values(), ids=BAD_ROWS)


def test_repair_names_the_row_that_is_no_tour():
    repair = LocalSearchRepair(backend="cpu")
    X = np.array([GOOD, BAD_ROWS["a city twice"]])
    with pytest.raises(ValueError, match="row 1 is not a permutation"):
        repair.do(cloud(N), Population.new("X", X))


@pytest.mark.parametrize("backend", BACKENDS)
class TestDoors:
    @every_bad_row
    def test_tours(self, row, backend):
        ants = colony(cloud(N), backend, n_ants=1, local_search=LocalSearch())
        improver = make_improver(listed_instance(cloud(N), 8), LocalSearch(), backend)
        before = ants.export_state()
        doors = (
            lambda: ants.improve(row[None], 1),
            lambda: ants.accept(row[None], [1.0]),
            lambda: improver.improve(row[None], 1),
            lambda: climbers(cloud(N), backend).start_from(row[None]),
        )
        for door in doors:
            with pytest.raises(ValueError, match="tours"):
                door()
        assert all(np.array_equal(before[name], array) for name, array in ants.export_state().items())

    def test_lengths_of_accepted_tours(self, backend):
        engine = colony(cloud(N), backend)
        for lengths in ([np.nan], [np.inf], [1.0, 2.0], 1.0, ["long"]):
            with pytest.raises(ValueError, match="lengths"):
                engine.accept(GOOD[None], lengths)

    @pytest.mark.parametrize(
        ("name", "spoil"),
        [
            ("tau", np.nan),
            ("tau", np.inf),
            ("tau", -1.0),
            ("rest", np.nan),
            ("tau0", -1.0),
            ("tours", 10**6),
            ("tours", 3),
            ("tours", 2**32),
            ("lengths", np.nan),
            ("reference", N),
            ("reference", -2),
            ("reference_length", np.nan),
        ],
    )
    def test_a_colonys_state(self, name, spoil, backend):
        engine = colony(cloud(N), backend, local_search=LocalSearch())
        engine.construct(1)
        assert_refuses_spoilt(engine, name, spoil, tau=engine.export_state()["tau"] + 1.0)

    @pytest.mark.parametrize(("name", "spoil"), [("ids", N), ("ids", -2), ("tail", 2), ("tail", -1)])
    def test_a_selective_memorys_state(self, name, spoil, backend):
        engine = colony(
            cloud(N),
            backend,
            selection="pseudo_random_proportional",
            together=False,
            memory="selective",
            trails_per_node=2,
        )
        assert_refuses_spoilt(engine, name, spoil)

    def test_a_state_of_another_memory_of_the_same_shape(self, backend):
        acs = {"selection": "pseudo_random_proportional", "together": False, "candidate_list_size": 4}
        ring = colony(cloud(N), backend, **acs, memory="selective", trails_per_node=4)
        lists = colony(cloud(N), backend, **acs, memory="candidate")
        before = lists.export_state()
        assert before["tau"].shape == ring.export_state()["tau"].shape == (N, 4)
        with pytest.raises(ValueError, match=r"'memory'\] must be 1 \(candidate\), got 2 \(selective\)"):
            lists.import_state(ring.export_state())
        assert all(np.array_equal(before[name], array) for name, array in lists.export_state().items())

    @pytest.mark.parametrize("array", ["memory", "tau", "tours", "reference_length"])
    def test_a_state_that_lacks_an_array(self, array, backend):
        engine = colony(cloud(N), backend)
        state = engine.export_state()
        del state[array]
        with pytest.raises(ValueError, match=f"no array '{array}'"):
            engine.import_state(state)

    @pytest.mark.parametrize(
        ("name", "spoil"),
        [
            ("tours", 10**6),
            ("best_tours", 3),
            ("move", N),
            ("move", -1),
            ("row", N - 2),
            ("row", -2),
            ("lengths", np.nan),
            ("best_lengths", np.nan),
        ],
    )
    def test_climbers_state(self, name, spoil, backend):
        engine = climbers(cloud(N), backend)
        engine.climb(1)
        assert_refuses_spoilt(engine, name, spoil)

    @pytest.mark.parametrize("name", ["tours", "best_tours"])
    def test_climbers_without_a_tour(self, name, backend):
        engine = climbers(cloud(N), backend)
        engine.climb(1, 1)  # each climber is within a climb
        state = engine.export_state()
        with pytest.raises(ValueError, match=rf"'{name}'\]: row 0 is not a permutation"):
            engine.import_state({**state, name: np.zeros_like(state[name])})

    @pytest.mark.parametrize("name", ["tours", "unit"])
    def test_a_focused_colony_has_tours_and_a_unit_from_its_start_on(self, name, backend):
        """Ants that copied a source of zeros never reached n cities; trails are divided by the unit."""
        engine = make_faco(listed_instance(cloud(N), 5), FacoParameters(n_ants=2), backend)
        engine.begin()
        state = engine.export_state()
        with pytest.raises(ValueError, match=rf"state\['{name}'\]"):
            engine.import_state({**state, name: np.zeros_like(state[name])})

    def test_a_colony_has_no_tour_or_all(self, backend):
        engine = colony(cloud(N), backend)
        engine.construct(1)
        state = engine.export_state()
        state["tours"][2] = 0
        with pytest.raises(ValueError, match=r"'tours'\]: row 2 is not a permutation"):
            engine.import_state(state)

    @pytest.mark.parametrize("name", ["tours", "best"])
    def test_chains_with_precedence_are_tours(self, name, backend):
        problem = TSP(cloud(15).coords[:, :2], "EUC_2D", precedence=[(1, 2)])
        engine = make_search(listed_instance(problem, 8), MemeticParameters(population_size=2), backend)
        engine.search(1)
        state = engine.export_state()
        with pytest.raises(ValueError, match=rf"'{name}'\]: row 0 is not a permutation"):
            engine.import_state({**state, name: np.zeros_like(state[name])})

    def test_migrants_are_tours(self, backend):
        engine = memetic(cloud(20), backend)
        engine.search(1)
        state = {**engine.export_state(), "migrants": np.zeros((2, 20), np.int32)}
        with pytest.raises(ValueError, match=r"'migrants'\]: row 0 is not a permutation"):
            engine.import_state(state)

    def test_an_engine_that_has_built_nothing_hands_its_state_on(self, backend):
        fresh = colony(cloud(N), backend).export_state()
        colony(cloud(N), backend).import_state(fresh)
        climbers(cloud(N), backend).import_state(climbers(cloud(N), backend).export_state())
