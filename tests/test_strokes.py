"""Strokes in an order with little travel, each in the direction that fits."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from pymoo_gpuaco import solve_strokes

STROKES = np.array(
    [[[0, 0], [0, 5]], [[3, 1], [3, 6]], [[1, 5], [2, 6]], [[5, 1], [9, 0]], [[5, 2], [8, 3]]], float
)


def shortest(strokes, home=None, returns=True):
    """Return the least travel of all orders and directions."""
    least = np.inf
    for order in itertools.permutations(range(len(strokes))):
        for turned in itertools.product((False, True), repeat=len(strokes)):
            ends = [strokes[s][::-1] if t else strokes[s] for s, t in zip(order, turned, strict=True)]
            stops = [point for pair in ends for point in pair]
            legs = [(a, b) for a, b in itertools.pairwise(stops)][1::2]
            if home is not None:
                legs += [(home, stops[0])] + [(stops[-1], home)] * returns
            least = min(least, sum(np.hypot(*np.subtract(a, b)) for a, b in legs))
    return least


@pytest.mark.parametrize(("home", "returns"), [(None, True), ((0, 0), True), ((6, 6), False)])
def test_the_travel_is_the_least_of_all_orders_and_directions(home, returns):
    found = solve_strokes(STROKES, 5, home=home, returns=returns)
    assert found.travel == pytest.approx(shortest(STROKES, home, returns))
    assert sorted(found.order) == list(range(5))
    for stroke, turned, (begin, end) in zip(found.order, found.reversed, found.path, strict=True):
        np.testing.assert_array_equal([begin, end], STROKES[stroke][::-1] if turned else STROKES[stroke])


def test_one_stroke_and_closed_strokes():
    found = solve_strokes([[(0, 0), (3, 4)]], 1, home=(3, 4))
    assert (found.order.tolist(), found.travel) == ([0], 5)
    assert solve_strokes([[(0, 0), (3, 4)]], 1).travel == 0
    found = solve_strokes([[(0, 0), (0, 0)], [(3, 4), (3, 4)]], 1, home=(0, 0))
    assert found.travel == 10


@pytest.mark.parametrize(
    ("strokes", "options", "words"),
    [
        ([[0, 0], [1, 1]], {}, r"strokes must have shape \(m, 2, 2\)"),
        (np.zeros((0, 2, 2)), {}, "strokes must have shape"),
        ([[(0, 0), (1, np.nan)]], {}, "strokes must be in"),
        ([[(0, 0), (1, 1)]], {"home": (1, 2, 3)}, r"home must have shape \(2,\)"),
    ],
)
def test_other_shapes_are_refused(strokes, options, words):
    with pytest.raises(ValueError, match=words):
        solve_strokes(strokes, 1, **options)


@pytest.mark.parametrize("with_middles", [True, False])
def test_polylines_count_by_their_ends(with_middles):
    between = [[(4.0, 4.0)] * i if with_middles else [] for i in range(5)]
    lines = [[tuple(a), *more, tuple(b)] for (a, b), more in zip(STROKES, between, strict=True)]
    for given in (
        lines,
        [np.array(line) for line in lines],
        [SimpleNamespace(coords=line) for line in lines],
    ):
        found = solve_strokes(given, 5)
        assert found.travel == pytest.approx(shortest(STROKES))
        assert found.path.shape == (5, 2, 2)


@pytest.mark.parametrize("word", ["start", "end"])
def test_the_place_of_the_pen_is_home(word):
    with pytest.raises(TypeError, match=f"no argument '{word}': home= is the position"):
        solve_strokes(STROKES, 1, **{word: 0})
