"""Which of its two algorithms GPUMMAS is, and that one line says when an argument has chosen it."""

import copy
import logging
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMMAS
from pymoo_gpuaco.host import notices
from tests.algorithm_cases import BACKEND, Tour, cities


@pytest.fixture
def said(caplog, monkeypatch):
    monkeypatch.setattr(notices, "_said", {})
    caplog.set_level(logging.INFO, "pymoo_gpuaco")

    def whole_tours():
        records = [record for record in caplog.records if "whole tours" in record.getMessage()]
        caplog.clear()
        # shown where nobody set up logging
        assert all(record.levelno == logging.WARNING for record in records)
        return [record.getMessage() for record in records]

    return whole_tours


def is_focused(algorithm):
    return algorithm._parameters().construction == "focused"


def test_by_default_ants_change_good_tours_and_nothing_is_said(said):
    algorithm = GPUMMAS(backend=BACKEND)
    algorithm.setup(cities(), ("n_gen", 1), seed=1)
    assert is_focused(algorithm)
    assert said() == []


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"n_ants": 6}, "n_ants=6 is an argument of"),
        ({"candidate_list_size": 8}, "candidate_list_size=8 is an argument of"),
        ({"candidate_list_size": None}, "candidate_list_size=None is an argument of"),
        ({"local_search": "2opt"}, "local_search='2opt' is an argument of"),
        ({"pheromone": "candidate"}, "pheromone='candidate' is an argument of"),
        ({"selection": "wrs"}, "selection='wrs' is an argument of"),
        ({"tabu": "list"}, "tabu='list' is an argument of"),
        ({"n_ants": 6, "tabu": "list"}, "n_ants=6, tabu='list' are arguments of"),
    ],
)
def test_an_argument_of_whole_tours_is_named_in_one_line(given, named, said):
    algorithm = GPUMMAS(backend=BACKEND, **given)
    algorithm.setup(cities(), ("n_gen", 1), seed=1)
    assert not is_focused(algorithm)
    (line,) = said()
    assert line.startswith(f"GPUMMAS builds whole tours here, as {named} ants that do")


def test_the_same_words_are_said_once_a_process(said):
    algorithm = GPUMMAS(6, backend=BACKEND)
    with ThreadPoolExecutor(4) as threads:
        for run in [threads.submit(minimize, cities(), algorithm, ("n_gen", 2), seed=1) for _ in range(4)]:
            run.result()
    assert len(said()) == 1
    algorithm.setup(cities(), ("n_gen", 2), seed=1)
    algorithm.next()
    copy.deepcopy(algorithm).next()
    pickle.loads(pickle.dumps(algorithm)).next()
    assert said() == []
    algorithm.setup(cities(), selection="rwm")
    assert "n_ants=6, selection='rwm'" in said()[0]


@pytest.mark.parametrize("construction", ["full", "focused"])
def test_who_chooses_is_not_told(construction, said):
    GPUMMAS(6, construction=construction, backend=BACKEND).setup(cities(), ("n_gen", 1), seed=1)
    assert said() == []


def test_where_the_problem_decides_no_argument_is_blamed(said):
    algorithm = GPUMMAS(6, backend=BACKEND)
    algorithm.setup(Tour(cities().D), ("n_gen", 1), seed=1)
    assert not is_focused(algorithm)
    assert said() == []
