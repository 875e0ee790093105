"""Pictures and records of runs; without positions or history they say what is missing."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver
from PIL import Image
from pymoo.optimize import minimize

from pymoo_gpuaco import (
    GPUACS,
    GPUMMAS,
    TSP,
    Front,
    GPU2OptIHC,
    GPUMemetic,
    MultiObjectiveTSP,
    OpenPath,
    Recorder,
    solve,
)
from pymoo_gpuaco.colony.trails import branching_factor
from pymoo_gpuaco.visualization import TourAnimation, plot_convergence, plot_front, plot_pheromone, plot_tour
from tests.algorithm_cases import BACKEND, cities, every_base, shorten_climbs, small
from tests.engine_cases import cloud


@pytest.fixture(scope="module")
def run():
    return minimize(cloud(40), GPUMMAS(n_ants=4), ("n_gen", 6), seed=1, save_history=True)


def test_a_tour_is_drawn_closed_through_all_cities(run):
    figure = plot_tour(run.problem, run.X, title="forty")
    line = figure.axes[0].lines[0].get_xydata()
    assert isinstance(figure, Figure)
    assert np.array_equal(line, run.problem.positions[np.append(run.X, run.X[0])])
    assert figure.axes[0].get_title() == "forty"
    assert figure._repr_png_().startswith(b"\x89PNG"), "a notebook shows it"


def test_convergence_is_the_best_length_by_generation(run):
    y = plot_convergence(run).axes[0].lines[0].get_ydata()
    assert len(y) == 6
    assert y[-1] == run.F[0]
    assert np.all(np.diff(y) <= 0)


def test_an_animation_has_a_frame_for_each_better_tour(tmp_path):
    animation = TourAnimation(max_frames=4)
    minimize(cloud(40), GPUACS(n_ants=2, local_search=False), ("n_gen", 30), seed=1, callback=animation)
    lengths = [frame.length for frame in animation.frames]
    assert all(frame.trails is None for frame in animation.frames)
    assert 2 <= len(lengths) <= 4
    assert lengths == sorted(lengths, reverse=True)
    animation.save(tmp_path / "run.gif")
    with Image.open(tmp_path / "run.gif") as picture:
        assert picture.n_frames == len(lengths)


def test_an_animation_with_trails_keeps_those_of_each_frame(tmp_path):
    animation = TourAnimation(trails=True)
    result = minimize(
        cloud(30), GPUMMAS(n_ants=2, local_search=False), ("n_gen", 4), seed=1, callback=animation
    )
    for frame in animation.frames:
        lines, strength = frame.trails
        assert lines.shape == (len(strength), 2, 2)
        assert strength.max() == 1.0
    if animation.frames[-1].generation == 4:
        drawn = plot_pheromone(result.algorithm).axes[0].collections[0]
        assert len(drawn.get_segments()) == len(animation.frames[-1].trails[1])
    animation.save(tmp_path / "run.gif")
    assert (tmp_path / "run.gif").stat().st_size > 1000
    with pytest.raises(TypeError, match=r"GPU2OptIHC has no pheromone trails$"):
        minimize(cloud(10), GPU2OptIHC(2), ("n_gen", 1), callback=TourAnimation(trails=True))
    with pytest.raises(TypeError, match="trails must be True or False"):
        TourAnimation(trails=1)


def test_what_is_missing_is_said(run, tmp_path):
    with pytest.raises(ValueError, match="positions"):
        plot_tour(TSP(matrix=np.ones((4, 4))), [0, 1, 2, 3])
    with pytest.raises(ValueError, match="permutation"):
        plot_tour(run.problem, np.zeros(40))
    for other in (minimize(cloud(10), GPUMMAS(n_ants=2), ("n_gen", 1)), solve(cloud(10))):
        with pytest.raises(ValueError, match="save_history"):
            plot_convergence(other)
    with pytest.raises(TypeError, match=r"Result has no pheromone trails; give its \.algorithm"):
        plot_pheromone(run)
    with pytest.raises(TypeError, match="GPU2OptIHC"):
        plot_pheromone(GPU2OptIHC())
    with pytest.raises(ValueError, match="no tour"):
        TourAnimation().save(tmp_path / "none.gif")
    with pytest.raises(ValueError, match="max_frames"):
        TourAnimation(max_frames=1)


SPACE = np.random.default_rng(8).random((30, 2))
FACTORS = np.random.default_rng(9).uniform(1.0, 2.0, (30, 30))
DISTANCES = np.hypot(*(SPACE[:, None] - SPACE).T)


@pytest.mark.parametrize(
    ("problem", "arrows"),
    [
        (TSP(SPACE, fixed_edges=[(0, 1), (1, 2)]), 0),
        (TSP(matrix=DISTANCES * FACTORS, positions=SPACE, fixed_edges=[(3, 4)]), 30),
        (OpenPath(SPACE, start=5), 0),
        (OpenPath(matrix=DISTANCES * FACTORS, positions=SPACE), 29),
    ],
    ids=["fixed", "asymmetric", "path", "asymmetric path"],
)
def test_directions_and_fixed_edges_of_every_kind_of_tour(problem, arrows):
    run = minimize(problem, GPUMemetic(), ("n_gen", 6), seed=1)
    drawn = plot_tour(problem, run.X).axes[0]
    legs = [c for c in drawn.collections if isinstance(c, Quiver)]
    assert [leg.N for leg in legs] == ([arrows] if arrows else [])
    assert len(drawn.lines[0].get_xydata()) == 30 + problem.closed
    fixed = [c for c in drawn.collections if isinstance(c, LineCollection)]
    assert sum(len(c.get_segments()) for c in fixed) == len(problem.fixed_edges)


def front_of(problem, count=40):
    tours = np.array([np.random.default_rng(i).permutation(problem.n_cities) for i in range(count)])
    return Front(tours, problem.tour_lengths(tours), problem)


def test_a_front_of_two_objectives_is_points_and_three_tours_on_both_maps():
    problem = MultiObjectiveTSP([cloud(12, 1), cloud(12, 2)], names=("way", "tolls"))
    front = front_of(problem)
    points, *tours = plot_front(front, title="twelve").axes
    assert (points.get_xlabel(), points.get_ylabel(), points.get_title()) == ("way", "tolls", "twelve")
    assert np.array_equal(points.lines[0].get_xydata(), front.lengths)
    rows = front.along()
    assert [line.get_xydata()[0].tolist() for line in points.lines[1:]] == front.lengths[rows].tolist()
    assert len(tours) == 2 * len(rows) == 6
    for number, panel in enumerate(tours):
        tour, part = front.tours[rows[number // 2]], problem.parts[number % 2]
        assert np.array_equal(panel.lines[0].get_xydata(), part.positions[np.append(tour, tour[0])])
    assert tours[0].get_title() == "\n".join(f"{value:.10g}" for value in front.lengths[0])


def test_a_front_of_three_objectives_is_lines_and_tours_on_their_one_map():
    one = cloud(12, 1)
    others = [TSP(matrix=cloud(12, seed).D) for seed in (2, 3)]
    front = front_of(MultiObjectiveTSP([one, *others]))
    lines, *tours = plot_front(front).axes
    assert len(lines.lines) == 40 + len(front.along())
    assert lines.get_title() == "40 tours"
    assert len(tours) == len(front.along())
    assert plot_front(Front(front.tours, front.lengths)).axes[0].lines  # without a problem no maps
    with pytest.raises(ValueError, match="front must have at least one tour"):
        plot_front(Front(np.empty((0, 5)), np.empty((0, 2))))
    with pytest.raises(TypeError, match=r"front must be a Front, such as .*, got ndarray"):
        plot_front(front.lengths)


@every_base
def test_records_are_those_of_the_run(cls, monkeypatch):
    shorten_climbs(monkeypatch)
    recorder, seen = Recorder(), []

    def both(algorithm):
        recorder(algorithm)
        seen.append((algorithm.evaluator.n_eval, algorithm.opt[0].F[0], algorithm.pop.get("F").min()))

    minimize(cities(20), small(cls), ("n_gen", 5), seed=1, callback=both)
    records = recorder.records
    assert list(records) == list(Recorder.COLUMNS)
    assert records["generation"].tolist() == [1, 2, 3, 4, 5]
    np.testing.assert_array_equal(
        np.transpose(seen), [records[c] for c in ("tours", "best", "iteration_best")]
    )
    assert np.all(np.diff(records["seconds"]) >= 0)
    if cls is GPU2OptIHC:
        assert np.isnan(records["iteration_mean"]).all()
    else:
        assert np.all(records["iteration_mean"] >= records["iteration_best"])


def test_the_branching_factor_is_taken_every_so_often():
    recorder = Recorder(branching=2)
    result = minimize(cities(30), small(GPUMMAS), ("n_gen", 5), seed=1, callback=recorder)
    factor = recorder.records["branching_factor"]
    assert factor[0] == factor[1]
    assert factor[2] == factor[3]
    assert factor[4] == branching_factor(result.algorithm.trails("candidates"))
    assert np.isnan(Recorder().records["branching_factor"]).all()


def test_another_run_begins_again_and_a_pickle_keeps_the_records():
    recorder = Recorder()
    for generations in (4, 2):
        minimize(cities(9), small(GPUMMAS), ("n_gen", generations), seed=1, callback=recorder)
    assert len(recorder.records["best"]) == 2
    copied = pickle.loads(pickle.dumps(recorder))
    np.testing.assert_array_equal(copied.records["best"], recorder.records["best"])


def test_convergence_is_drawn_from_a_recorder_over_what_is_asked_for():
    recorder = Recorder()
    minimize(cities(30), GPUMMAS(2, backend=BACKEND), ("n_gen", 6), seed=1, callback=recorder)
    for over in ("generation", "seconds", "tours"):
        axes = plot_convergence(recorder, over=over).axes[0]
        np.testing.assert_array_equal(axes.lines[0].get_xdata(), recorder.records[over])
        np.testing.assert_array_equal(axes.lines[0].get_ydata(), recorder.records["best"])
        assert axes.get_xlabel() == over
    with pytest.raises(ValueError, match="over must be one of 'generation'"):
        plot_convergence(recorder, over="years")
    with pytest.raises(ValueError, match="requires the Recorder of"):
        plot_convergence(Recorder())
