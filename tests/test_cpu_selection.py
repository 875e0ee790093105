"""Selection rules as distributions: chi-square against the exact probabilities of Eq. (1), Skinderowicz 2020."""

import numpy as np
import pytest
from scipy import stats

from pymoo_gpuaco.backends.cpu import selection
from tests.compiled_callees import new_stream

N = 40
DRAWS = 20_000


@pytest.fixture(scope="module")
def row():
    """Weights over four orders of magnitude, as trails and distances make them."""
    return 10.0 ** np.random.default_rng(3).uniform(-4, 0, N)


def visited_after(share):
    """A tabu with the given share of cities visited, seven visited at least one."""
    rng = np.random.default_rng(int(100 * share))
    visited = np.zeros(N, np.uint8)
    visited[rng.permutation(N)[: max(1, min(N - 2, round(share * N)))]] = 1
    return visited


def draw(rule, row, visited, stream):
    candidates = np.arange(N, dtype=np.int32)
    if rule == "candidates_roulette":
        return selection.roulette_among_candidates(
            candidates, row, visited, np.empty(N, np.int32), np.empty(N), stream
        )
    return selection.race_among_candidates(candidates, row, visited, stream)


RULES = ("candidates_roulette", "candidates_race")


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
@pytest.mark.parametrize("rule", RULES)
def test_exact_rules_draw_in_proportion_to_weight(rule, share, row):
    visited = visited_after(share)
    stream = new_stream(99, 1, 0)
    drawn = np.array([draw(rule, row, visited, stream) for _ in range(DRAWS)])
    drawn = drawn[drawn >= 0]  # a trial that gave up says nothing; the rest must be exact
    assert len(drawn) > 500
    counts = np.bincount(drawn, minlength=N)
    assert counts[visited == 1].sum() == 0
    expected = np.where(visited == 1, 0.0, row)
    expected *= len(drawn) / expected.sum()
    # cities too rare for a chi-square cell of their own share one
    rare = expected < 8
    cells = np.append(counts[~rare], counts[rare].sum())
    means = np.append(expected[~rare], expected[rare].sum())
    keep = means > 0
    assert stats.chisquare(cells[keep], means[keep]).pvalue > 1e-4


def test_rounding_at_the_end_of_the_wheel_never_selects_a_visited_city():
    # weights whose running differences do not reach zero exactly, the last cities visited
    weights = np.full(N, 0.1)
    visited = np.zeros(N, np.uint8)
    visited[N // 2 :] = 1
    stream = new_stream(5, 0, 0)
    for _ in range(20_000):
        assert selection.roulette_over_row(weights, visited, stream) < N // 2


@pytest.mark.parametrize("rule", RULES)
def test_a_candidate_list_without_open_city_says_so(rule, row):
    visited = np.ones(N, np.uint8)
    assert draw(rule, row, visited, new_stream(1, 0, 0)) == -1
