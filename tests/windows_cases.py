"""Window search on the device, or on the host in its place, and what windows have found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda.focused import CudaFocused
from pymoo_gpuaco.backends.cuda.windows import windows as module
from pymoo_gpuaco.backends.cuda.windows.windows import Trials, Windows
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.exchange import Exchanges
from pymoo_gpuaco.problems import TSP
from pymoo_gpuaco.problems.instance import as_instance
from tests import emulator

FOUND = np.dtype([("gain", "f8"), ("edges", "i4"), ("first", "i4")])  # Found of found.cuh


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp() / "emulated_windows"


@pytest.fixture
def emulated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> emulator.Emulator:
    """The kernels on the host, whether or not there is a device."""
    emulator.skip_without_compiler()
    monkeypatch.setattr(module, "_COMMIT_THREADS", 64)
    return emulator.install(monkeypatch, folder)


def engine_of(problem: TSP, tours: int, windows: int, candidates: int = 8) -> CudaFocused:
    """A focused engine with so many tours, and windows of each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pymoo_gpuaco.backends.cuda.focused.shape", lambda *_: (tours, windows))
        return CudaFocused(as_instance(problem, candidates), ColonyParameters(construction="focused"))


def windows_of(problem: TSP, tours: int, windows: int, candidates: int = 8) -> Windows:
    return engine_of(problem, tours, windows, candidates).windows


def search(part: Windows, tours: np.ndarray, key: int, how: Trials) -> list[Exchanges]:
    """Search windows of tours once and commit nothing; return what they found, a tour at a time."""
    device = part._device
    with device.working(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(part, "commit", lambda: None)
        part.load(tours)
        part.search(key, how)
        found = np.empty(part.tours * part.windows, FOUND)
        device.read(found, "window_found")
        rows = int((found["first"] + found["edges"]).max())
        pairs = np.empty((2, max(1, rows), 2), np.int32)
        device.read(pairs[0], "window_removed")
        device.read(pairs[1], "window_added")
    return [packed(own, *pairs) for own in found.reshape(part.tours, part.windows)]


def packed(found: np.ndarray, removed: np.ndarray, added: np.ndarray) -> Exchanges:
    """Exchanges one behind the other; those of no edges are among them."""
    rows = [np.arange(f["first"], f["first"] + f["edges"]) for f in found]
    first = np.cumsum([0, *found["edges"]]).astype(np.int64)
    chosen = np.concatenate(rows).astype(np.intp)
    return Exchanges(found["gain"].astype(float), first, removed[chosen], added[chosen])


def each(exchanges: Exchanges) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """Gain, edges out and edges in of every exchange that has some."""
    for gain, a, b in zip(exchanges.gain, exchanges.first[:-1], exchanges.first[1:], strict=True):
        if b > a:
            yield float(gain), exchanges.removed[a:b], exchanges.added[a:b]
