"""Every argument of every constructor: what is allowed, and that the rest is refused by name, value and range.

The table is checked against the signatures: an argument without a row fails.
"""

import inspect
import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from pymoo.core.variable import Integer, Real

from pymoo_gpuaco import (
    ALL_ALGORITHMS,
    GPUACS,
    GPUAS,
    GPUBWAS,
    GPUEAS,
    GPUFACO,
    GPUMMAS,
    GPURAS,
    GPU2OptIHC,
    GPUMemetic,
    LocalSearch,
)
from pymoo_gpuaco.algorithms.arguments import PYMOO_ARGUMENTS
from pymoo_gpuaco.colony.selection import offered_by
from tests.algorithm_cases import BACKEND, SIZES, cities, every_algorithm, small

NAN, INF = float("nan"), float("inf")
COUNT = "must be an integer >= 1"
MILLION = "must be an integer in [1, 1048576]"
THOUSAND = "must be an integer in [1, 1024]"
EXPONENT = "must be in [0, 20]"
NUMBER = "must be a number in [0, 20]"
SHARE = "must be in [0, 1]"


def label(*parts):
    """Id of a test, the same in every process: without addresses in memory."""
    return re.sub(" at 0x[0-9a-f]+", "", "-".join(map(str, (*parts[:2], repr(parts[2])))))[:70]


def one_of(*options):
    return f"must be one of {', '.join(map(repr, options))}"


def counts(allowed, highest=None):
    """Rows of an integer argument; ``allowed`` is the text of its range."""
    rows = [(0, ValueError, allowed), (-3, ValueError, allowed)]
    rows += [(wrong, TypeError, allowed) for wrong in (2.0, 2.5, "3", True, [4])]
    return rows + ([(highest + 1, ValueError, allowed)] if highest else [])


def reals(allowed, outside, kind=None, optional=False):
    """Rows of a real argument; an optional one may be None."""
    kind = kind or allowed.replace("must be in", "must be a number in")
    rows = [(wrong, ValueError, allowed) for wrong in (*outside, NAN, INF, -INF)]
    return rows + [
        (wrong, TypeError, kind) for wrong in ("1", True, [0.5], 1j, *([] if optional else [None]))
    ]


def names(*options):
    """Rows of an argument that is one of some strings."""
    return [
        (wrong, ValueError, one_of(*options)) for wrong in ("other", "", None, 1, True, options[0].upper())
    ]


# argument: (values that are accepted, rows of (value, error, what the message says besides name and value))
LOCAL_SEARCH = "must be True, False, '2opt', '2opt+oropt', 'windows' or a LocalSearch"
DEPOSITS = ("schedule", "iteration_best", "global_best")
TABLE = {
    "n_ants": ([None, 1, 1 << 20, np.int64(7), Integer(5, bounds=(1, 9))], counts(MILLION, 1 << 20)),
    "population_size": ([None, 1, 1000, np.int64(7)], counts("must be an integer in [1, 1000]", 1001)),
    "n_offspring": ([1, 1000, 30], counts("must be an integer in [1, 1000]", 1001)),
    "initial_temperature": ([None, 0, 100, 1.5], reals("must be in [0, 100]", (-1, 101), optional=True)),
    "annealing_share": ([None, 1, 0.5], reals("must be in (0, 1]", (0, 1.1), optional=True)),
    "n_climbers": ([None, 1, 1 << 20, np.int32(7), Integer(5, bounds=(1, 9))], counts(MILLION, 1 << 20)),
    "kernel": (["auto", "intra", "tiled", "tuned"], names("auto", "intra", "tiled", "tuned")),
    "alpha": ([0, 20, 1.5, Fraction(1, 2), Real(1.0, bounds=(0, 9))], reals(EXPONENT, (-0.1, 20.1, 10**400))),
    "beta": ([0, 20, np.float32(2.5)], reals(EXPONENT, (-1, 21))),
    "rho": ([1, 1e-9, 0.5, Real(0.1, bounds=(0, 1))], reals("must be in (0, 1]", (0, -0.5, 1.0001))),
    "candidate_list_size": ([1, 1024, np.int64(8)], counts(THOUSAND, 1024)),
    "local_search": (
        [True, False, None, "2opt", "2opt+oropt", "windows", LocalSearch(), LocalSearch("2opt", 3.0, 2)],
        [(wrong, ValueError, LOCAL_SEARCH) for wrong in ("3opt", 1, 0, [True])],
    ),
    "candidates": (
        ["auto", "nearest", "quadrant", "alpha"],
        names("auto", "nearest", "quadrant", "alpha"),
    ),
    "pheromone": (["auto", "dense", "candidate"], names("auto", "dense", "candidate")),
    "heuristic": (
        [None, np.ones((3, 3)), lambda problem: problem.D],
        [(wrong, TypeError, "must be an (n, n) array or a function") for wrong in ("near", [[1, 2], [3]])]
        + [(wrong, ValueError, "must be") for wrong in (1.0, [1.0, 2.0])],
    ),
    "trials": ([1, 1 << 20], counts(MILLION, 1 << 20)),
    "switch": ([None, 0, 1, 0.85], reals(SHARE, (-0.01, 1.01), optional=True)),
    "tournament_size": ([None, 1, 1024], counts(THOUSAND, 1024)),
    "tabu": (["auto", "compact", "list", "bitmask"], names("auto", "compact", "list", "bitmask")),
    "p_best": ([1e-9, 0.999], reals("must be in (0, 1)", (0, 1, -1, 2))),
    "deposit": (
        ["schedule", "iteration_best", "global_best", 1, np.int64(25)],
        [
            (wrong, ValueError, f"{one_of(*DEPOSITS)} or an integer >= 1")
            for wrong in ("other", None, True, 2.5)
        ]
        + [(wrong, ValueError, "must be an integer >= 1") for wrong in (0, -3)],
    ),
    "tau_min": (["candidates", "cities", "2n"], names("candidates", "cities", "2n")),
    "smoothing": ([1, 0.5], reals("must be in (0, 1]", (0, -0.5, 1.0001))),
    "backup_list_size": (
        [0, 1024],
        [(wrong, ValueError, "must be an integer in [0, 1024]") for wrong in (-1, 1025)]
        + [(wrong, TypeError, "integer") for wrong in (2.0, None, "3")],
    ),
    "min_new_edges": ([1, 64], counts("must be an integer in [1, 64]", 64)),
    "best_as_source": ([0, 1, 0.01], reals(SHARE, (-0.1, 1.1))),
    "iterations": ([None, 1, 10**9], counts(COUNT)),
    "restart_after": ([1, 10**9], counts(COUNT)),
    "elitist_weight": ([None, 0, 10**6, 2.5], reals("must be in [0, 1e+06]", (-1, 2e6), optional=True)),
    "first_trail": ([None, 1e-9, 1e9], reals("must be in [1e-09, 1e+09]", (0, -1, 2e9), optional=True)),
    "ranks": ([2, 1 << 20], counts("must be an integer in [2, 1048576]", 1 << 20)),
    "mutation_probability": ([0, 1, 0.3], reals(SHARE, (-0.1, 1.1))),
    "mutation_strength": ([0, 1000, 4.0], reals("must be in [0, 1000]", (-1, 1001))),
    "mutation_iterations": ([None, 1, 10**9], counts(COUNT)),
    "restart_below": ([0, 1, 0.05], reals(SHARE, (-0.1, 1.1))),
    "variant": (["sync", "relaxed", "selective"], names("sync", "relaxed", "selective")),
    "q0": ([0, 1, 0.9], reals(SHARE, (-0.1, 1.1))),
    "xi": ([None, 0, 1, 0.1], reals(SHARE, (-0.1, 1.1), optional=True)),
    "local_update_period": ([1, 10**9], counts(COUNT)),
    "trails_per_node": ([1, 1024], counts(THOUSAND, 1024)),
    "deterministic": (
        [True, False],
        [(wrong, TypeError, "deterministic must be True or False") for wrong in (1, None, "yes")],
    ),
    "sampling": (
        [None, np.arange(5), [[0, 1, 2]], lambda problem, n: None],
        [(wrong, TypeError, "must be a pymoo Sampling") for wrong in (3, "random", 1.5)],
    ),
    "n_elites": ([None, 1, np.int64(1), Integer(1, bounds=(1, 5))], counts(COUNT)),
    "backend": (["auto", "cpu", "cuda"], [*names("auto", "cpu", "cuda"), ("tpu", ValueError, "'cuda'")]),
    "device": (
        [0, 3, np.int64(1)],
        [
            (-1, ValueError, "must be an integer >= 0"),
            (0.0, TypeError, "integer >= 0"),
            (None, TypeError, "integer"),
        ],
    ),
    "threads": ([None, 1, np.int64(3)], counts("must be an integer in [1, 1024]", 1024)),
}
# where a class differs from the table
GPUAS_SELECTIONS = offered_by("GPUAS")
OWN = {
    (GPUAS, "selection"): (list(GPUAS_SELECTIONS), names(*GPUAS_SELECTIONS)),
    (GPUMMAS, "selection"): (["auto", "rwm", "wrs"], names("auto", "rwm", "wrs")),
    # candidate edges need a candidate list, which these have not by default
    **{(cls, "pheromone"): (["auto", "dense"], TABLE["pheromone"][1]) for cls in (GPUAS, GPUEAS, GPURAS)},
    **{
        (cls, "candidate_list_size"): ([None, 32], TABLE["candidate_list_size"][1])
        for cls in (GPUAS, GPUEAS, GPURAS, GPUBWAS)
    },
    # where there are no lists by default, there is nothing to choose
    **{(cls, "candidates"): (["auto"], TABLE["candidates"][1]) for cls in (GPUAS, GPUEAS, GPURAS)},
    (GPUMMAS, "candidate_list_size"): ([None, 32], TABLE["candidate_list_size"][1]),
    (GPUMemetic, "candidate_list_size"): (
        [None, 4, 8],
        [row for row in counts("must be an integer in [4, 8]", 9) if row[0] is not None],
    ),
    (GPUACS, "candidate_list_size"): ([None, 32], TABLE["candidate_list_size"][1]),
    (GPUFACO, "candidate_list_size"): (
        [1, 16],
        [*counts(THOUSAND, 1024), (None, ValueError, "integer in [1, 1024]")],
    ),
    (GPUFACO, "pheromone"): (
        ["auto", "candidate"],
        [*names("auto", "candidate"), ("dense", ValueError, "'candidate'")],
    ),
    (GPUFACO, "local_search"): (
        [True, False, None, "2opt", "2opt+oropt", LocalSearch("2opt", kicks=0.0)],
        [
            *TABLE["local_search"][1],
            ("windows", ValueError, "without kicks"),
            (LocalSearch(kicks=1.0), ValueError, "without kicks"),
        ],
    ),
    (GPUFACO, "heuristic"): ([None], [(1.0, ValueError, "must be None for GPUFACO, got")]),
}


def arguments_of(cls):
    """Arguments of a constructor; pymoo's own left out."""
    return set(inspect.signature(cls).parameters) - set(PYMOO_ARGUMENTS)


def table():
    for name, cls in ALL_ALGORITHMS.items():
        for argument in sorted(arguments_of(cls)):
            row = OWN.get((cls, argument)) or TABLE.get(argument)
            yield name, cls, argument, row


ACCEPTED = [
    pytest.param(cls, argument, value, id=label(name, argument, value))
    for name, cls, argument, row in table()
    for value in (row[0] if row else [])
]
REFUSED = [
    pytest.param(cls, argument, *bad, id=label(name, argument, bad[0]))
    for name, cls, argument, row in table()
    for bad in (row[1] if row else [])
]


@every_algorithm
def test_every_argument_has_a_row(cls):
    missing = [
        argument for _, owner, argument, row in table() if owner is cls and not (row and row[0] and row[1])
    ]
    assert missing == []


@every_algorithm
def test_setup_takes_what_the_constructor_takes(cls):
    assert set(cls.arguments()) == arguments_of(cls)
    ours = ("n_ants", "n_climbers", "population_size", "backend", "termination")
    given = {name: one.default for name, one in inspect.signature(cls).parameters.items() if name not in ours}
    small(cls).setup(cities(), **given)


def test_a_subclass_may_state_fields():
    @dataclass(kw_only=True, eq=False, repr=False)
    class Mine(GPUEAS):
        rho: float = 0.25
        patience_of_mine: int = 3

    assert (Mine().rho, Mine().patience_of_mine, Mine(7).n_ants) == (0.25, 3, 7)
    assert repr(Mine(patience_of_mine=4)) == "Mine(patience_of_mine=4)"
    with pytest.raises(TypeError, match="did you mean patience_of_mine"):
        Mine(patience_of_min=4)
    Mine(backend=BACKEND).setup(cities(), patience_of_mine=5)


@pytest.mark.parametrize(("cls", "argument", "value"), ACCEPTED)
def test_allowed_value_is_accepted_and_kept(cls, argument, value):
    assert getattr(cls(**{argument: value}), argument) is value


@pytest.mark.parametrize(("cls", "argument", "value", "error", "words"), REFUSED)
def test_other_value_is_refused_by_name_value_and_range(cls, argument, value, error, words):
    with pytest.raises(error) as refused:
        cls(**{argument: value})
    message = str(refused.value)
    assert message.startswith(argument)
    assert words in message
    assert repr(value) in message


@pytest.mark.parametrize("name", ["moves", "kicks", "kick_length"])
def test_local_search_refuses_by_name(name):
    wrong = {"moves": "3opt", "kicks": -1.0, "kick_length": 0}[name]
    with pytest.raises(ValueError, match=rf"local_search.{name} must be .*, got {wrong!r}"):
        LocalSearch(**{name: wrong})
    assert set(inspect.signature(LocalSearch).parameters) == {"moves", "kicks", "kick_length"}
    with pytest.raises(
        ValueError, match=r"local_search.kick_length must be None with moves='windows'.*got 9"
    ):
        LocalSearch("windows", kick_length=9)


def test_arguments_that_exclude_each_other_are_named():
    with pytest.raises(ValueError, match=r"must be None with selection='acceptance_tournament', got 8"):
        GPUAS(selection="acceptance_tournament", candidate_list_size=8)
    with pytest.raises(ValueError, match=r"memory='candidate'.*candidate_list_size|pheromone='candidate'"):
        GPUMMAS(pheromone="candidate", candidate_list_size=None)
    with pytest.raises(ValueError, match=r"variant='selective'.*pheromone must be 'auto', got 'dense'"):
        GPUACS(variant="selective", pheromone="dense")
    with pytest.raises(ValueError, match=r"candidates must be 'auto' if .* got 'quadrant'"):
        GPUAS(candidates="quadrant")
    GPUAS(candidates="quadrant", candidate_list_size=8)
    GPUAS(candidates="quadrant", local_search=True)  # which reads lists, the ants do not


@every_algorithm
def test_only_the_number_of_tours_may_be_positional(cls):
    first = SIZES.get(cls, "n_ants")
    assert getattr(cls(7, backend=BACKEND), first) == 7
    with pytest.raises(TypeError):
        cls(7, 8)


@pytest.mark.parametrize(
    ("argument", "meant"),
    [("n_ant", "n_ants"), ("pop_size", "n_ants"), ("evaporation", "rho"), ("sed", "seed")],
)
def test_a_misspelt_argument_is_guessed(argument, meant):
    with pytest.raises(TypeError, match=rf"no argument '{argument}'; did you mean {meant}\? It takes "):
        GPUMMAS(**{argument: 3})


def test_an_algorithm_shows_the_arguments_that_are_not_the_defaults():
    assert repr(GPUMemetic()) == "GPUMemetic()"
    assert repr(GPUMMAS(8, rho=0.2, seed=1)) == "GPUMMAS(n_ants=8, rho=0.2)"
    assert (
        repr(GPU2OptIHC(backend="cpu", sampling=np.zeros((2, 3)))) == "GPU2OptIHC(sampling=.., backend='cpu')"
    )
    assert repr(GPUMMAS(local_search="2opt")) == "GPUMMAS(local_search='2opt')"


def test_construction_names_the_algorithm_of_the_focused_search():
    with pytest.raises(TypeError, match=r"GPUMMAS has no argument 'construction': use GPUMemetic\(\)"):
        GPUMMAS(construction="focused")
