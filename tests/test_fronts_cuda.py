"""The CUDA engine of fronts beside that of the CPU, with the kernels run on the host: see ``emulator``; needs g++."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pymoo_gpuaco.backends.cpu.pareto import engine as cpu
from pymoo_gpuaco.backends.cpu.pareto.engine import CpuFronts
from pymoo_gpuaco.backends.cuda import pareto as parts
from pymoo_gpuaco.backends.cuda.pareto import CudaFronts
from pymoo_gpuaco.pareto.archive import Archive
from pymoo_gpuaco.pareto.device import Children, Front, FrontDevice, Members
from pymoo_gpuaco.pareto.instance import FrontInstance, edges_of
from tests import emulator, test_fronts_moves, test_ppls
from tests.test_fronts_moves import instance_of

emulator.skip_without_compiler()


@pytest.fixture(autouse=True)
def emulated(monkeypatch: pytest.MonkeyPatch, compiled_kernels: Path) -> emulator.Emulator:
    return emulator.install(monkeypatch, compiled_kernels)


def archive_of(instance: FrontInstance, device: FrontDevice) -> Archive:
    """Some tours, and how the archive keeps them."""
    archive = Archive(instance.n, instance.k, instance.unit, 1000)
    weights = np.random.default_rng(0).dirichlet(np.ones(instance.k), 8)
    tours = np.stack([np.random.default_rng(i).permutation(instance.n) for i in range(8)]).astype(np.int32)
    tours = np.concatenate([device.descend(tours, weights, 3, key) for key in range(3)])
    archive.add(tours, instance.lengths(tours))
    return archive


def members_of(archive: Archive, slack: float, exchanges: int) -> Members:
    rows = np.flatnonzero(archive.present())
    lengths, m, k = archive.lengths[rows], len(rows), archive.k
    weights = np.random.default_rng(1).dirichlet(np.ones(k), m)
    tours = archive.tours[rows].astype(np.int32)
    return Members(
        tours, lengths, weights, np.full(m, slack), np.full(m, exchanges), np.arange(m) % archive.n
    )


def front_of(archive: Archive, rank: int) -> Front:
    points = archive.points if archive.k == 2 else archive.lengths
    return Front(points, archive.tree, rank, archive.seen.slots)


def keys(lengths: np.ndarray, unit: np.ndarray) -> set[tuple[float, ...]]:
    return {tuple(row) for row in np.floor(lengths / unit + 0.5)}


@pytest.mark.parametrize("own_edges", [False, True])
@pytest.mark.parametrize(
    ("n", "k", "metric", "exchanges", "rank", "slack"),
    [
        (30, 2, "EUC_2D", 3, 0, 200.0),
        (18, 2, "EUC_2D", 5, 2, 15.0),
        (25, 2, "EXACT", 4, 1, 60.0),
        (20, 3, "EUC_2D", 4, 0, 40.0),
        (16, 3, "EXACT", 3, 0, 100.0),
        (12, 6, "GEO", 2, 0, 2000.0),
    ],
)
def test_both_engines_find_the_same(n, k, metric, exchanges, rank, slack, own_edges, monkeypatch):
    for engine in (cpu, parts):
        monkeypatch.setattr(engine, "MOST_CHILDREN", 1 << 16)
    instance = instance_of(n, k, metric, near=5) if metric != "GEO" else globe(n, k)
    devices = CpuFronts(instance), CudaFronts(instance)
    archive = archive_of(instance, devices[0])
    members, front = members_of(archive, slack, exchanges), front_of(archive, rank)
    found = []
    for device in devices:
        if own_edges:
            device.use(edges_of(archive.tours[archive.front], False))
        children = device.explore(members, front)
        tours = device.follow(members, children)
        assert (np.sort(tours, axis=1) == np.arange(n)).all()
        np.testing.assert_allclose(instance.lengths(tours), children.lengths, rtol=1e-12)
        assert len(np.unique(children.owner)) > 1
        assert np.bincount(children.owner).max() < 1 << 16  # else the CPU has not explored all
        found.append(keys(children.lengths, instance.unit))
    assert found[0] == found[1]
    assert len(found[1]) == len(children.owner) > 20  # each once


def globe(n: int, k: int) -> FrontInstance:
    from pymoo_gpuaco import TSP, MultiObjectiveTSP
    from tests.instances import front_instance

    places = np.random.default_rng(0).uniform(-80, 80, (k, n, 2))
    return front_instance(MultiObjectiveTSP([TSP(part, metric="GEO") for part in places]), 5)


def look_once(monkeypatch: pytest.MonkeyPatch, most: int | None = None) -> tuple[Children, np.ndarray]:
    instance = instance_of(20, 2, near=4)
    if most is not None:
        monkeypatch.setattr(parts, "_MOST_FOUND", most)
    archive = archive_of(instance, CpuFronts(instance))
    members, device = members_of(archive, 60.0, 3), CudaFronts(instance)
    children = device.explore(members, front_of(archive, 0))
    return children, device.follow(members, children)


def test_in_how_many_parts_members_are_looked_at_changes_nothing(monkeypatch):
    found = []
    for rounds in (1, 40, 500):  # a block for 8 members, 5 and 64 for each
        monkeypatch.setattr(parts, "_WAVES", rounds)
        children, tours = look_once(monkeypatch)
        found.append([*children, tours])
    for one, two, three in zip(*found, strict=True):
        assert np.array_equal(one, two)
        assert np.array_equal(one, three)


def test_what_has_no_room_at_once_is_found_in_parts(monkeypatch):
    whole, _ = look_once(monkeypatch)
    most = int(np.bincount(whole.owner).max()) + 1  # no member has more, but all together
    assert len(whole.owner) > most
    parts, tours = look_once(monkeypatch, most)
    # parts of members know not of each other: lengths that two of them lead to come twice
    assert {tuple(row) for row in parts.lengths} == {tuple(row) for row in whole.lengths}
    assert (np.diff(parts.owner) >= 0).all()
    assert (instance_of(20, 2).lengths(tours) == parts.lengths).all()


def test_of_a_member_without_room_a_part_is_found_and_always_the_same(monkeypatch):
    whole, _ = look_once(monkeypatch)
    most = int(np.bincount(whole.owner[whole.exchanges == 2]).max()) + 1
    few, tours = look_once(monkeypatch, most)
    again, same = look_once(monkeypatch, most)
    assert 0 < np.bincount(few.owner).max() <= most < np.bincount(whole.owner).max()
    assert {tuple(row) for row in few.lengths} < {tuple(row) for row in whole.lengths}
    assert np.array_equal(few.lengths, again.lengths)
    assert np.array_equal(tours, same)


def test_a_full_table_ends_every_search_for_a_key(monkeypatch):
    taken = []
    search = CudaFronts._explore

    def noted(self, *given):
        children = search(self, *given)
        counts = np.empty(2, np.int32)
        self.device.read(counts, "child_counts")
        taken.append(int(counts[0]))
        return children

    monkeypatch.setattr(CudaFronts, "_explore", noted)
    monkeypatch.setattr(parts, "_WAVES", 500)  # blocks that end before they look a second time
    whole, _ = look_once(monkeypatch)
    assert taken[0] == len(whole.owner) > 256
    most = int(np.bincount(whole.owner[whole.exchanges == 2]).max()) + 1
    # as many free slots as always, then fewer than there are children: blocks would look for a free one for ever
    for slots in (parts._SLOTS, 128):
        taken.clear()
        monkeypatch.setattr(parts, "_SLOTS", slots)
        few, _ = look_once(monkeypatch, most)
        assert most < max(taken) <= most + 32 < 128  # what was under way when it became full
        assert 0 < np.bincount(few.owner).max() <= most


def test_no_part_of_a_look_begins_when_time_has_passed(monkeypatch):
    searches = []

    def passes(self, *given):
        searches.append(given[2:4])
        self.device.stop.until = 0.0
        return search(self, *given)

    search = CudaFronts._explore
    monkeypatch.setattr(CudaFronts, "_explore", passes)
    monkeypatch.setattr(parts, "_MOST_FOUND", 8)
    instance = instance_of(20, 2, near=4)
    device, archive = CudaFronts(instance), archive_of(instance, CpuFronts(instance))
    members = members_of(archive, 60.0, 3)
    device.explore(members, front_of(archive, 0))
    assert searches == [(0, len(members.tours))]
    assert device.stop.is_set()  # the members are to be explored yet


def test_kernels_that_are_halted_hand_over_tours_and_say_so():
    instance = instance_of(30, 2, near=4)
    device = CudaFronts(instance)
    device.device.write("halt", np.ones(1, np.int32))
    tours = np.stack([np.random.default_rng(i).permutation(30) for i in range(3)]).astype(np.int32)
    left = device.descend(tours, np.full((3, 2), 0.5), 1000, 1)
    assert np.array_equal(left, tours)
    device.device.write("halt", np.zeros(1, np.int32))
    assert (
        instance.lengths(device.descend(tours, np.full((3, 2), 0.5), 0, 1)).sum(axis=1)
        < instance.lengths(tours).sum(axis=1)
    ).all()


@pytest.mark.parametrize("exchanges", [2, 3, 4])
def test_every_tour_that_several_exchanges_in_a_row_lead_to_is_found(exchanges):
    test_fronts_moves.test_every_tour_that_several_exchanges_in_a_row_lead_to_is_found(exchanges, "cuda")


def test_kicks_shorten_tours_under_their_own_weights():
    test_fronts_moves.test_what_more_members_dominate_and_what_was_met_is_passed_over("cuda")
    test_fronts_moves.test_kicks_shorten_tours_under_their_own_weights("cuda")


def test_what_is_searched_for_is_the_exact_front():
    test_ppls.test_what_is_searched_for_is_the_exact_front(2, 8, "cuda")


def test_a_run_goes_on_from_a_file_as_if_nothing_had_been(tmp_path, monkeypatch):
    test_ppls.test_a_run_goes_on_from_a_file_as_if_nothing_had_been(
        14, 2, 4, 7, 9, "cuda", tmp_path, monkeypatch
    )
