"""The benchmark of fronts: quality beside a reference, and references that only get better."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    import front_problems
    import front_references
    import front_runs

    return front_runs, front_references, front_problems


def test_found_are_points_that_are_reached_and_the_area_is_the_references(scripts):
    runs, *_ = scripts
    reference = np.array([[0.0, 100.0], [50, 50], [100, 0]])
    # from (101, 101): (0, 100) has 101 x 1, (50, 50) adds 51 x 50, (100, 0) adds 1 x 50
    area = 101 * 1 + 51 * 50 + 1 * 50
    # (50, 49) beats (50, 50); (0, 101) lies outside; (60, 60) is dominated
    points = np.array([[0.0, 101.0], [50, 49], [60, 60]])
    quality = runs.Quality.of(points, reference)
    assert (quality.points, round(quality.found, 6)) == (2, round(100 / 3, 6))
    assert quality.hypervolume == pytest.approx(100 * 51 * 52 / area)


def test_three_objectives_are_measured_as_two_are_and_four_nearly_so(scripts):
    runs, *_ = scripts
    union = runs.united([np.array([[0.0, 0, 100], [100, 100, 0]]), np.array([[0.0, 0, 100], [1, 1, 100]])])
    assert union.tolist() == [[0, 0, 100], [100, 100, 0]]
    # from (101, 101, 101): 101 x 101 x 1, and 1 x 1 x 101 that share 1 x 1 x 1
    quality = runs.Quality.of(union[:1], union)
    assert quality.points == 1
    assert quality.found == 50
    assert quality.hypervolume == pytest.approx(100 * 101**2 / (101**2 + 101 - 1))
    # of one point of four objectives it is a box: from 101 times (1, 1, 1, 1) the sides are 1.01 - 1 and 1.01 - .9
    one, better = np.full((1, 4), 100.0), np.full((1, 4), 90.0)
    assert runs.Quality.of(better, one).hypervolume == pytest.approx(100 * 11**4, rel=0.05)


def test_cities_are_made_by_name(scripts):
    *_, problems = scripts
    problem = problems.problem_of(Path(), "clustered400-1+random400-1+random400-2")
    assert (problem.n_cities, problem.n_obj) == (400, 3)
    again = problems.problem_of(Path(), "clustered400-1+random400-3")
    assert np.array_equal(problem.parts[0].coords, again.parts[0].coords)
    clustered, uniform, other = (
        np.sort(part.D, axis=1)[:, 1].mean() for part in problem.parts
    )  # to the nearest
    assert clustered < 0.9 * min(uniform, other)
    roads = problems.problem_of(Path(), "roads30-1+roads30-2")
    assert not roads.symmetric
    one = roads.parts[0].D
    assert (
        one <= (one[:, :, None] + one[None]).min(axis=1) + 2
    ).all()  # no way is shorter over another place
