"""Misspelt arguments of what is not an algorithm: the class that was called, the nearest name, and all there are."""

import pickle

import pytest

from pymoo_gpuaco import TSP, ColonyTermination, FrontTermination, Islands, LocalSearch, OpenPath, solve
from pymoo_gpuaco.problems import MultiObjectiveTSP

SQUARE = [[0, 0], [1, 0], [1, 1], [0, 1]]


class Depots(TSP):
    """A user's own, with arguments of its own and the rest passed on."""

    def __init__(self, depots, **others):
        super().__init__(SQUARE, **others)
        self.depots = depots


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: OpenPath(SQUARE, starts=1),
            "OpenPath has no argument 'starts'; did you mean start. It takes best_known",
        ),
        (
            lambda: OpenPath(SQUARE, fixed=1),
            "OpenPath has no argument 'fixed'. It takes .*, end, fixed_edges, .*, start, symmetric$",
        ),
        (lambda: TSP(SQUARE, nams=1), "TSP has no argument 'nams'; did you mean name"),
        (lambda: MultiObjectiveTSP([SQUARE] * 2, name=1), "did you mean names. It takes names, problems$"),
        (
            lambda: solve(SQUARE, secondz=1),
            "solve has no argument 'secondz'; did you mean seconds. It takes algorithm, ",
        ),
        (
            lambda: LocalSearch(kick=1),
            "LocalSearch has no .* did you mean kicks. It takes kick_length, kicks, moves$",
        ),
        (
            lambda: ColonyTermination(second=1),
            "ColonyTermination has no .* did you mean seconds. It takes n_max_gen, ",
        ),
        (
            lambda: FrontTermination(target=1),
            "FrontTermination has no .*'target'. It takes n_max_gen, seconds, stagnation$",
        ),
        (lambda: Islands(None, n_island=2), "Islands has no argument 'n_island'; did you mean n_islands"),
    ],
)
def test_a_misspelt_argument_names_who_was_called_and_what_it_takes(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_what_is_known_passes_and_comes_back_from_a_pickle():
    assert Depots(2, name="own").label == "own"
    path = pickle.loads(pickle.dumps(OpenPath(SQUARE, start=1, name="own")))
    assert (path.start, path.label) == (1, "own")
    assert pickle.loads(pickle.dumps(LocalSearch(kicks=2.0))) == LocalSearch(kicks=2.0)
    assert solve(SQUARE, seconds=1, seed=2).length == 4
