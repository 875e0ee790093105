"""Runs in files: a damaged one is refused, a killed writer leaves the old one, a whole one goes on exactly."""

import os
import random
import re
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
from pymoo.termination import get_termination

from pymoo_gpuaco import GPUMMAS, checkpoint
from tests.algorithm_cases import (
    BACKEND,
    assert_same,
    cities,
    every_algorithm,
    shorten_climbs,
    small,
    snapshot,
)
from tests.engine_cases import COLONIES, cloud, colony
from tests.fuzz import SEED, TIMES


def started(cls, generations=2):
    algorithm = small(cls).setup(cities(12), termination=("n_gen", generations), seed=3)
    algorithm.run()
    return algorithm


def gone_on(algorithm, until=5):
    algorithm.termination = get_termination("n_gen", until)
    algorithm.run()
    return snapshot(algorithm)


@every_algorithm
def test_a_run_from_a_file_goes_on_exactly(cls, tmp_path, monkeypatch):
    shorten_climbs(monkeypatch)
    algorithm = started(cls)
    checkpoint.save(algorithm, tmp_path / "run")
    expected = gone_on(algorithm)
    for _ in range(2):
        assert_same(gone_on(checkpoint.load(tmp_path / "run")), expected)
    assert [file.name for file in tmp_path.iterdir()] == ["run"]


def test_a_file_with_a_changed_byte_is_refused_or_gives_the_same_run(tmp_path):
    """Bytes outside of a member, such as its date, has no checksum and changes nothing."""
    rng = random.Random(SEED)
    path = tmp_path / "run"
    algorithm = started(GPUMMAS)
    checkpoint.save(algorithm, path)
    whole, expected, refused = path.read_bytes(), snapshot(algorithm), 0
    for turn in range(200 * TIMES):
        data = bytearray(whole)
        if turn % 10 == 0:
            data = data[: rng.randrange(len(data))]
        elif turn % 10 == 1:
            data = data[:70]
        else:
            at = rng.randrange(200) if turn % 2 else rng.randrange(len(data))
            data[at] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            loaded = checkpoint.load(path)
        except ValueError as error:
            assert re.match(r".*run: the file (is|has|names)", str(error))  # noqa: PT017
            refused += 1
        else:
            assert_same(snapshot(loaded), expected)
    assert refused > 120 * TIMES


def test_another_version_is_refused(tmp_path):
    path, now = tmp_path / "run", b'{"format":%d,' % checkpoint.FORMAT
    checkpoint.save(started(GPUMMAS), path)
    with zipfile.ZipFile(path) as file, zipfile.ZipFile(tmp_path / "later", "w") as later:
        for name in file.namelist():
            later.writestr(name, file.read(name).replace(now, b'{"format":99,'))
    with pytest.raises(
        ValueError,
        match=f"later: the file has version 99 of the format; this pymoo_gpuaco reads {checkpoint.FORMAT}",
    ):
        checkpoint.load(tmp_path / "later")


def test_what_cannot_be_written_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "run"
    path.write_text("before")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.save(started(GPUMMAS), path)
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["run"]
    with pytest.raises(FileNotFoundError):
        checkpoint.save(started(GPUMMAS), tmp_path / "nowhere" / "run")


def test_what_was_there_is_replaced_and_never_written_into(tmp_path):
    """Else a writer that is killed would leave half of a file; another name for the old one still shows it."""
    path, old = tmp_path / "run", tmp_path / "old"
    path.write_text("before")
    os.link(path, old)
    checkpoint.save(started(GPUMMAS), path)
    assert old.read_text() == "before"
    assert checkpoint.load(path).opt is not None


WRITER = """
import sys
import numpy as np
from pymoo_gpuaco import GPUMMAS, TSP, checkpoint
problem = TSP(np.random.default_rng(0).random((300, 2)), metric="EXACT")
algorithm = GPUMMAS(n_ants=2, backend="cpu").setup(problem, termination=("n_gen", 1), seed=1)
algorithm.run()
print("ready", flush=True)
while True:
    checkpoint.save(algorithm, sys.argv[1])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_a_killed_writer_leaves_a_whole_file(tmp_path):
    rng = random.Random(SEED)
    path = tmp_path / "run"
    for _ in range(3 * TIMES):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
        assert writer.stdout.readline() == b"ready\n"
        while not path.exists():
            time.sleep(0.001)
        time.sleep(rng.uniform(0.0, 0.1))
        writer.kill()
        writer.communicate()
        algorithm = checkpoint.load(path)
        assert algorithm.problem.tour_length(algorithm.opt.get("X")[0]) == algorithm.opt.get("F")[0]


@pytest.mark.parametrize("name", ["kicks", "acs selective", "candidate memory"])
def test_an_engine_takes_a_mutated_state_over_whole_or_not_at_all(name):
    rng = np.random.default_rng(SEED)
    engine = colony(cloud(25), BACKEND, **COLONIES[name])
    engine.construct(1)
    whole = engine.export_state()
    taken = 0
    for _ in range(150 * TIMES):
        state = {key: value.copy() for key, value in whole.items()}
        for _ in range(rng.integers(1, 4)):
            key = sorted(state)[rng.integers(len(state))]
            way = rng.integers(5)
            if way == 0:
                del state[key]
                break
            flat = state[key].reshape(-1)
            if flat.dtype == object:
                continue
            if way == 1:
                state[key] = state[key][:-1]
            elif way == 2 and flat.size:
                flat.view(np.uint8)[rng.integers(flat.nbytes)] ^= 1 << rng.integers(8)
            elif way == 3 and flat.size:
                extremes = (
                    [-1, 0, 24, 25, 2**31 - 1] if flat.dtype.kind == "i" else [np.nan, np.inf, -1.0, 3e38]
                )
                flat[rng.integers(flat.size)] = extremes[rng.integers(len(extremes))]
            elif way == 4:
                state[key] = state[key].astype(object)
        try:
            engine.import_state(state)
            taken += 1
        except ValueError:
            after = engine.export_state()
            assert all(np.array_equal(after[key], whole[key]) for key in whole)
            continue
        lengths = engine.construct(2)
        assert np.array_equal(lengths, cloud(25).tour_lengths(engine.tours(np.arange(len(lengths)))))
        engine.import_state(whole)
    assert 0 < taken < 150 * TIMES
