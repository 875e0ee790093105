"""Long generations of the CUDA engines end early, and keep what they have built. The kernels run on the host."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pymoo_gpuaco import GPUAS, GPUMMAS, GPU2OptIHC, LocalSearch
from pymoo_gpuaco.backends import Stoppable
from pymoo_gpuaco.backends.cuda import engine as engine_module
from pymoo_gpuaco.backends.cuda import slices as plans
from pymoo_gpuaco.backends.cuda.climbers.engine import CudaClimbers
from pymoo_gpuaco.backends.cuda.device import Device, DeviceLimits
from pymoo_gpuaco.backends.cuda.device import device as device_module
from pymoo_gpuaco.backends.cuda.engine import CudaColony, default_ants
from pymoo_gpuaco.backends.cuda.local_search import by_windows
from pymoo_gpuaco.backends.cuda.slices import Slices, slices
from pymoo_gpuaco.backends.cuda.walks import acs
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.host.keys import fold_in
from tests import emulator, fake_device
from tests.engine_cases import COLONIES, asymmetric, climbers, cloud, colony, instance_for

HOURS = 10_000.0
M, TOGETHER, KICKS = 7, 3, 5  # ants, and of a launch; kicks of a launch
N = 33


def test_what_is_cut_by_hand():
    walk = ColonyParameters()
    # 2^31 steps are 178,956 ants of 12,000 cities
    assert slices(12_000, 200_000, walk, False) == Slices(178_956, (0,))
    assert slices(12_000, 170_000, walk, False) == Slices(170_000, (0,))
    assert slices(12_000, 200_000, walk, True) == Slices(200_000, (0,))
    # of all cities a step weighs 32 at a time: 1000 * 32 an ant
    everyone = ColonyParameters(candidate_list_size=None)
    assert slices(1000, 100_000, everyone, False) == Slices(67_108, (0,))
    # 10 * 4000 kicks are two launches of 2^14, and one of 7232; the ants of a launch are the fewest there may be
    kicked = ColonyParameters(local_search=LocalSearch(kicks=10.0))
    assert slices(4000, 5000, kicked, False) == Slices(4096, (16384, 16384, 7232))
    assert slices(1000, 5000, ColonyParameters(local_search=LocalSearch(kicks=0.0)), False) == Slices(
        5000, (0,)
    )
    # a kick a city where direction counts: 3000 * (1 + 13 + 128) steps an ant
    usual = ColonyParameters(local_search=LocalSearch())
    assert slices(3000, 6000, usual, False, symmetric=False) == Slices(5041, (3000,))
    assert slices(20_000, 6000, usual, False, symmetric=False) == Slices(4096, (16384, 3616))


@pytest.mark.parametrize("n", [8, 1000, 30_000, 1_000_000])
@pytest.mark.parametrize("local_search", [None, LocalSearch()])
def test_the_usual_colony_is_not_cut(n, local_search):
    parameters = ColonyParameters(local_search=local_search)
    m = default_ants(n, parameters, DeviceLimits(148, 64, 227 << 10))
    cut = slices(n, m, parameters, False)
    assert cut.ants >= m
    assert len(cut.kicks) == 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("emulator")


@pytest.fixture
def device(monkeypatch, folder) -> emulator.Emulator:
    emulator.skip_without_compiler()
    monkeypatch.setattr(CudaClimbers.climb, "__defaults__", (1 << 24,))
    # the host takes long for what a device does at once
    monkeypatch.setattr(by_windows, "_TOURS_AT_ONCE", TOGETHER)
    return emulator.install(monkeypatch, folder)


@pytest.fixture
def cut(device, monkeypatch) -> emulator.Emulator:
    """Cut generations of more than three ants, and searches of more than five kicks."""
    monkeypatch.setattr(plans, "STEPS", 1)
    monkeypatch.setattr(plans, "FEWEST_ANTS", TOGETHER)
    monkeypatch.setattr(plans, "KICKS", KICKS)
    return device


def engine_of(way: str, m: int = M) -> CudaColony:
    return colony(cloud(N), "cuda", **{**COLONIES[way], "n_ants": m})


every_way = pytest.mark.parametrize("way", COLONIES)
CUT = [way for way in COLONIES if way != "acs sync"]
# where ants change no trails as they walk
STILL = [way for way in CUT if "xi" not in COLONIES[way]]


def whole(engine: CudaColony, lengths: np.ndarray) -> np.ndarray:
    """All tours of a construction, which are what its lengths say."""
    tours = engine.tours(np.arange(M))
    assert np.array_equal(np.sort(tours, axis=1), np.tile(np.arange(N), (M, 1)))
    assert np.array_equal(lengths, cloud(N).tour_lengths(tours))
    assert np.array_equal(lengths, engine.export_state()["lengths"])
    return tours


def assert_greedy_tour_rescued(engine: CudaColony) -> None:
    tour, length = engine.rescued()
    greedy, expected = engine.greedy_tour()
    assert np.array_equal(tour, greedy)
    assert length == expected


def strike(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("way", STILL)
def test_each_launch_builds_what_a_colony_of_its_own_would(way):
    engine = engine_of(way)
    assert isinstance(engine, Stoppable)
    tours = whole(engine, engine.construct(9))
    turns = 7 if way == "kicks" else 1  # 33 kicks, five at a time
    keys = [fold_in(9, number) for number in range(3 * turns)]
    assert keys[0] == 9
    assert len(set(keys)) == 3 * turns
    for number, (first, end) in enumerate([(0, 3), (3, 6), (6, 7)]):
        alone = engine_of(way, end - first)
        alone.construct(fold_in(9, number * turns))
        assert np.array_equal(alone.tours(np.arange(end - first)), tours[first:end])


@pytest.mark.usefixtures("cut")
@every_way
def test_time_enough_changes_nothing(way):
    engine, other = engine_of(way), engine_of(way)
    engine.stop_at(time.monotonic() + HOURS)
    for key in range(2):
        lengths = engine.construct(key)
        assert np.array_equal(lengths, other.construct(key))
        assert np.array_equal(whole(engine, lengths), other.tours(np.arange(M)))
        assert engine.n_built == M
    assert engine.rescued() is None


@pytest.mark.usefixtures("cut")
def test_asymmetric_tours_are_cut_between_their_kicks():
    problem = asymmetric(N)

    def engine() -> CudaColony:
        return colony(problem, "cuda", n_ants=M, local_search=LocalSearch())

    first, other, late = engine(), engine(), engine()
    first.stop_at(time.monotonic() + HOURS)
    assert np.array_equal(first.construct(1), other.construct(1))
    late.stop_at(time.monotonic() - 1.0)
    lengths = late.construct(1)
    assert np.array_equal(lengths, problem.tour_lengths(late.tours(np.arange(M))))
    assert late.n_built == TOGETHER
    # the first ants had the first of seven launches of kicks
    assert (lengths[:TOGETHER] >= other.lengths()[:TOGETHER]).all()
    assert lengths[:TOGETHER].mean() > other.lengths()[:TOGETHER].mean()


@pytest.mark.usefixtures("device")
def test_window_search_is_cut_between_its_rounds(monkeypatch):
    monkeypatch.setattr(by_windows, "_TOURS_AT_ONCE", 1)

    def engine() -> CudaColony:
        return colony(cloud(N), "cuda", n_ants=M, local_search=LocalSearch("windows", kicks=0.3))

    first, other, late, plain = (
        engine(),
        engine(),
        engine(),
        colony(cloud(N), "cuda", n_ants=M, local_search=LocalSearch()),
    )
    first.stop_at(time.monotonic() + HOURS)
    assert np.array_equal(first.construct(1), other.construct(1))
    rounds: list[int] = []
    windows = late._search._windows
    search = windows.search
    monkeypatch.setattr(windows, "search", lambda key, how: (rounds.append(key), search(key, how)))
    late.stop_at(time.monotonic() - 1.0)
    tours = whole(late, late.construct(1))
    assert len(rounds) == by_windows.ROUNDS_AT_ONCE < len(late._search._rounds)
    assert late.n_built == M
    lengths = cloud(N).tour_lengths(tours)
    assert (lengths <= plain.construct(1)).all()  # what 2-opt and Or-opt have left
    assert lengths.sum() >= other.lengths().sum()


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("way", CUT)
def test_without_time_the_first_ants_count_and_the_others_take_the_best_of_them(way):
    engine, other = engine_of(way), engine_of(way)
    engine.stop_at(time.monotonic() - 1.0)
    tours = whole(engine, engine.construct(1))
    assert engine.n_built == TOGETHER
    lengths = cloud(N).tour_lengths(tours)
    best = int(lengths[:TOGETHER].argmin())
    assert (tours[TOGETHER:] == tours[best]).all()
    if way in STILL and way != "kicks":
        other.construct(1)
        assert np.array_equal(tours[:TOGETHER], other.tours(np.arange(TOGETHER)))
    # the next construction, with time, is as if that one had not been made
    engine.stop_at(None)
    if way in STILL:
        engine, other = engine_of(way), engine_of(way)
        engine.stop_at(time.monotonic() - 1.0)
        engine.construct(1)
        state = {**other.export_state(), "reference": engine.export_state()["reference"]}
        state["reference_length"] = engine.export_state()["reference_length"]
        other.import_state(state)  # what the search remembers of the shortest tour
        engine.stop_at(None)
        assert np.array_equal(engine.construct(2), other.construct(2))
    else:
        whole(engine, engine.construct(2))
    assert engine.n_built == M


@pytest.mark.parametrize("way", ["rwm", "2opt", "kicks", "all cities", "acs sync", "acs relaxed"])
@pytest.mark.parametrize("wait", [0, 1, 2])
def test_an_interrupt_keeps_the_best_tour(way, wait, cut):
    engine, other = engine_of(way), engine_of(way)
    waits = iter([*[lambda: None] * wait, strike])
    cut.on_wait = lambda: next(waits, lambda: None)()
    interrupted = False
    try:
        engine.construct(1)
    except KeyboardInterrupt:
        interrupted = True
    cut.on_wait = lambda: None
    if interrupted:
        tour, length = engine.rescued()
        assert np.array_equal(np.sort(tour), np.arange(N))
        assert length == cloud(N).tour_length(tour)
    else:  # one launch, and one wait
        assert wait > 0
        assert way == "acs sync"
    if way in STILL:
        assert np.array_equal(engine.construct(2), other.construct(2))
    whole(engine, engine.construct(3))
    assert engine.rescued() is None


def test_an_interrupt_before_anything_is_built_leaves_the_greedy_tour(device, monkeypatch):
    engine = engine_of("rwm")
    monkeypatch.setattr(engine.walk, "build", strike)
    with pytest.raises(KeyboardInterrupt):
        engine.construct(1)
    assert_greedy_tour_rescued(engine)


@pytest.mark.usefixtures("device")
def test_a_construction_that_is_not_cut_looks_at_no_clock(monkeypatch):
    engine = engine_of("2opt")
    engine.stop_at(time.monotonic() - 1.0)
    monkeypatch.setattr(engine.device, "late", lambda: pytest.fail("waits between launches"))
    whole(engine, engine.construct(1))
    assert engine.n_built == M


def test_counts_of_a_walk_that_did_not_end_are_dropped(device, monkeypatch):
    engine, other = engine_of("acs sync"), engine_of("acs sync")
    for one in (engine, other):  # an update changes the trails that are not tau_0
        one.update_trails(TrailUpdate(0.5, ((np.arange(N), 9.0),), on_tours_only=True))
    close = engine.walk._open.close
    monkeypatch.setattr(engine.walk._open, "close", strike)
    with pytest.raises(KeyboardInterrupt):
        engine.construct(1)
    monkeypatch.setattr(engine.walk._open, "close", close)
    for key in (2, 3):
        assert np.array_equal(engine.construct(key), other.construct(key))
    assert np.array_equal(engine.export_state()["tau"], other.export_state()["tau"])


@pytest.fixture
def ended(device, monkeypatch):
    """End the next walk of a colony whose ants walk together at its first meeting."""
    monkeypatch.setattr(acs, "_WAITED_FOR", 1)

    def arrange(engine: CudaColony, way_out: Exception | None = None) -> None:
        own, wait = engine.device, engine.device.wait

        def end(early: bool = False) -> None:
            wait(early)
            assert early
            arrived = np.empty(1, np.uint32)
            own.read(arrived, "arrivals")
            # the only block, once, and the word of the first meeting
            assert arrived.tolist() == [(1 << 31) + 1]
            own.halted = True
            own.write("halt", np.zeros(1, np.int32))
            monkeypatch.setattr(own, "wait", wait)
            if way_out is not None:
                raise way_out

        set_halt(own, 1)
        monkeypatch.setattr(own, "wait", end)

    return arrange


def test_ants_that_walk_together_are_ended_between_two_steps(ended):
    engine, other = engine_of("acs sync"), engine_of("acs sync")
    for one in (engine, other):
        one.update_trails(TrailUpdate(0.5, ((np.arange(N), 9.0),), on_tours_only=True))
        one.construct(1)
    ended(engine)
    before = engine.export_state()["tau"]
    lengths = engine.construct(2)
    greedy, length = engine.greedy_tour()
    assert engine.n_built == 1
    assert lengths.tolist() == [length] * M
    assert np.array_equal(engine.tours(np.arange(M)), np.tile(greedy, (M, 1)))
    assert np.array_equal(engine.export_state()["tau"], before)
    for key in (3, 4):  # as if it had not been begun
        assert np.array_equal(engine.construct(key), other.construct(key))
        assert engine.n_built == M
    assert np.array_equal(engine.export_state()["tau"], other.export_state()["tau"])


def test_an_interrupt_ends_ants_that_walk_together(ended):
    engine, other = engine_of("acs sync"), engine_of("acs sync")
    ended(engine, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        engine.construct(1)
    assert_greedy_tour_rescued(engine)
    assert np.array_equal(engine.construct(2), other.construct(2))


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize(("n", "kicks"), [(700, 0.0), (120, 1.0)])
def test_the_host_ends_a_search_early(n, kicks):
    problem = cloud(n)
    engine = colony(problem, "cuda", n_ants=1, local_search=LocalSearch(kicks=kicks))
    tour = np.random.default_rng(4).permutation(n).astype(np.int32)[None]
    optimum, [length] = engine.improve(tour, 1)
    set_halt(engine.device, 1)
    ended, [longer] = engine.improve(tour, 1)
    assert np.array_equal(np.sort(ended[0]), np.arange(n))
    assert longer == problem.tour_length(ended[0])
    assert length < longer < problem.tour_length(tour[0])
    set_halt(engine.device, 0)
    assert np.array_equal(engine.improve(tour, 1)[0], optimum)


@pytest.mark.usefixtures("device")
def test_the_search_of_a_long_construction_ends_early(monkeypatch):
    engine = engine_of("2opt")
    assert engine.device.ends_early  # nothing is known yet
    clock = iter([10.0, 10.5, 20.0, 20.0625])
    monkeypatch.setattr(engine_module.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(engine.device, "wait", lambda *_: None)
    for key, short in enumerate([False, True]):
        engine.construct(key)
        assert engine.device.ends_early != short


def halt_of(device: Device) -> int:
    """What kernels see that look whether they are to end."""
    found = np.empty(1, np.int32)
    with device.working():
        device.read(found, "halt")
    return int(found[0])


def set_halt(device: Device, value: int) -> None:
    with device.working():
        device.write("halt", np.array([value], np.int32))


class Marked:
    """A mark that the device comes to after some questions, or when kernels are told to end."""

    def __init__(self, device: Device, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.told, self._end, self._device = 0.0, [], seconds, device
        monkeypatch.setattr(device_module.time, "monotonic", lambda: self.now)
        device.arrays.events[0] = self

    def query(self) -> bool:
        self.now += 0.03125
        return self.now > self._end

    def synchronize(self) -> None:
        self.told.append(halt_of(self._device))
        self._end = 0.0


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize(
    ("seconds", "halt_at", "ended"),
    # what takes less than 0.1 s is whole; questions are 1/32 s apart
    [(0.09, 0.0, None), (5.0, None, None), (5.0, 0.0, 0.125), (5.0, 1.0, 1.0), (0.5, 1.0, None)],
)
def test_kernels_are_ended_when_time_is_over(seconds, halt_at, ended, monkeypatch):
    device = engine_of("2opt").device
    mark = Marked(device, seconds, monkeypatch)
    assert device.ends_early  # nobody knows yet how long a construction takes
    device.stop.until = halt_at
    device.wait()
    assert mark.told == ([] if ended is None else [1])
    assert device.halted == (ended is not None)
    assert halt_of(device) == 0
    assert ended is None or ended <= mark.now <= ended + 0.0625


@pytest.mark.usefixtures("device")
def test_kernels_are_ended_by_an_interrupt(monkeypatch):
    device = engine_of("2opt").device
    mark = Marked(device, 5.0, monkeypatch)
    monkeypatch.setattr(device_module, "_give_way", strike)
    with pytest.raises(KeyboardInterrupt):
        device.wait()
    assert mark.told == [1]
    assert halt_of(device) == 0


@pytest.mark.usefixtures("device")
def test_a_search_that_was_ended_early_is_no_reference(monkeypatch):
    engine, other = engine_of("2opt"), engine_of("2opt")
    take = engine._tours.take_next

    def ended() -> object:
        engine.device.halted = True
        return take()

    monkeypatch.setattr(engine._tours, "take_next", ended)
    engine.construct(1)
    monkeypatch.setattr(engine._tours, "take_next", take)
    assert np.array_equal(engine.construct(2), other.construct(2))
    assert engine.export_state()["reference_length"] == other.export_state()["reference_length"]


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("moves", ["best", "batch"])
def test_climbers_do_less_where_time_is_short(moves):
    engine, other = (climbers(cloud(50), "cuda", moves=moves) for _ in range(2))
    assert isinstance(engine, Stoppable)
    engine.stop_at(time.monotonic() + HOURS)
    assert engine.climb(1) == other.climb(1)
    assert np.array_equal(engine.lengths(), other.lengths())
    before = engine.scans
    engine.stop_at(time.monotonic() - 1.0)
    engine.climb(1)
    assert engine.scans - before < before
    tour, length = engine.best()
    assert cloud(50).tour_length(tour) == length
    assert engine.rescued() is None


def test_climbers_that_are_interrupted_have_a_tour_and_go_on(device, monkeypatch):
    engine = climbers(cloud(50), "cuda")
    read = engine.device.read
    turns = iter([strike])
    monkeypatch.setattr(engine.device, "read", lambda *told: (next(turns, lambda: None)(), read(*told)))
    with pytest.raises(KeyboardInterrupt):
        engine.climb(1)
    tour, length = engine.rescued()
    assert cloud(50).tour_length(tour) == length
    engine.climb(1)
    assert engine.rescued() is None
    assert engine.best()[1] <= length or engine.scans > 0


RUNS: dict[str, Callable] = {
    "GPUAS": lambda: GPUAS(n_ants=M, backend="cuda"),
    "GPUMMAS": lambda: GPUMMAS(
        construction="full", n_ants=M, local_search=LocalSearch(kicks=0.5), backend="cuda"
    ),
    "GPU2OptIHC": lambda: GPU2OptIHC(n_climbers=3, backend="cuda"),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=list(RUNS))
def test_an_interrupted_run_has_its_best_tour_and_goes_on(run, cut, monkeypatch):
    problem = cloud(N)
    algorithm = run().setup(problem, termination=("n_gen", 3), seed=1)
    if run is RUNS["GPU2OptIHC"]:
        read, turns = algorithm.engine.device.read, iter([strike])
        monkeypatch.setattr(
            algorithm.engine.device, "read", lambda *told: (next(turns, lambda: None)(), read(*told))
        )
    else:
        waits = iter([*[lambda: None] * 2, strike])  # the greedy tour, one launch
        cut.on_wait = lambda: next(waits, lambda: None)()
    with pytest.raises(KeyboardInterrupt):
        algorithm.run()
    kept = algorithm.result()
    assert problem.tour_length(kept.X) == kept.F[0]
    algorithm.run()
    after = algorithm.result()
    assert problem.tour_length(after.X) == after.F[0] <= kept.F[0]


def test_a_run_without_time_counts_the_tours_that_were_built(cut):
    problem = cloud(N)
    algorithm = GPUAS(n_ants=M, backend="cuda").setup(problem, termination=("time", 1e-9), seed=1)
    algorithm.run()
    assert algorithm.evaluator.n_eval == TOGETHER
    assert problem.tour_length(algorithm.result().X) == algorithm.result().F[0]


@pytest.mark.parametrize("n", [40, 2500])
@every_way
def test_launches_of_a_few_of_many_ants_fit_their_kernels(way, n, monkeypatch):
    if n > 1000 and COLONIES[way].get("candidate_list_size", 0) is None:
        pytest.skip("tables of all pairs of cities take long")
    driver = fake_device.install(monkeypatch)  # a device of 132 multiprocessors
    monkeypatch.setattr(plans, "STEPS", 1)
    monkeypatch.setattr(plans, "FEWEST_ANTS", 150)
    chosen = ColonyParameters(**{**COLONIES[way], "n_ants": 301})
    engine = CudaColony(instance_for(cloud(n), chosen), chosen)
    before = driver.launches
    engine.construct(1)
    walks = 1 if way == "acs sync" else 3
    assert driver.launches - before > walks
    assert engine.n_built == 301
