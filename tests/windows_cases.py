"""Window search on the device, or on the host in its place, and what windows have found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda import windows as module
from pymoo_gpuaco.backends.cuda.search_device import CudaWindows
from pymoo_gpuaco.backends.cuda.windows import MOST_EDGES, Layout, Trials, Windows
from pymoo_gpuaco.memetic.commit import Exchanges
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.problems import TSP
from tests import emulator
from tests.instances import listed_instance

FOUND = np.dtype([("rank", "f4"), ("edges", "i2"), ("local", "i2")])  # WindowExchange of commit.cuh


@pytest.fixture
def emulated(compiled_kernels: Path, monkeypatch: pytest.MonkeyPatch) -> emulator.Emulator:
    """The kernels on the host, whether or not there is a device."""
    emulator.skip_without_compiler()
    monkeypatch.setattr(module, "_COMMIT_THREADS", 64)
    return emulator.install(monkeypatch, compiled_kernels)


def device_of(problem: TSP, tours: int, windows: int, candidates: int = 8) -> CudaWindows:
    """Search device of a number of tours, and of windows of each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "pymoo_gpuaco.backends.cuda.search_device.usual_layout", lambda *_: Layout(tours, windows)
        )
        return CudaWindows(listed_instance(problem, candidates), MemeticParameters())


def windows_of(problem: TSP, tours: int, windows: int, candidates: int = 8) -> Windows:
    return device_of(problem, tours, windows, candidates).windows


def search(part: Windows, tours: np.ndarray, key: int, how: Trials) -> list[Exchanges]:
    """Search windows of tours once and commit nothing; return what they found, a tour at a time, ranks for gains."""
    device = part._device
    with device.working(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(part, "commit", lambda: None)
        part.load(tours)
        part.search(key, how)
        found = np.empty((part.tours, part.windows), FOUND)
        device.read(found, "window_exchanges")
        rows = np.empty(part.tours, np.int32)
        device.read(rows, "window_edges")
        removed, added = np.empty((2, part.tours, part.windows * MOST_EDGES, 2), np.int32)
        device.read(removed, "window_removed")
        device.read(added, "window_added")
        owners = np.empty(removed.shape[:2], np.int32)
        device.read(owners, "window_owners")
    return [
        packed(own, owners[tour, :count], removed[tour, :count], added[tour, :count])
        for tour, (own, count) in enumerate(zip(found, rows, strict=True))
    ]


def packed(found: np.ndarray, owners: np.ndarray, removed: np.ndarray, added: np.ndarray) -> Exchanges:
    """Exchanges one behind the other; those of no edges are among them."""
    rows = np.argsort(owners, kind="stable")
    assert np.array_equal(np.bincount(owners, minlength=len(found)), found["edges"])
    return Exchanges(
        found["rank"].astype(float),
        np.cumsum([0, *found["edges"]]).astype(np.int64),
        removed[rows],
        added[rows],
        found["local"].astype(bool),
    )


class Change(NamedTuple):
    """Changes of one window: its rank, whether that is local, edges out and edges in (k, 2)."""

    rank: float
    local: bool
    removed: np.ndarray
    added: np.ndarray


def each(exchanges: Exchanges) -> Iterator[Change]:
    """Go through the exchanges that have some edges."""
    assert exchanges.local is not None
    for i in np.flatnonzero(np.diff(exchanges.first)):
        rows = slice(exchanges.first[i], exchanges.first[i + 1])
        yield Change(
            float(exchanges.gain[i]), bool(exchanges.local[i]), exchanges.removed[rows], exchanges.added[rows]
        )
