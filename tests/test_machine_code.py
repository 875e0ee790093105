"""A cache of compiled code that cannot be written or read costs time and one warning, never the run."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pymoo_gpuaco
from pymoo_gpuaco.memetic import warm_up
from pymoo_gpuaco.runtime.compiled import compiled_from, must_be_compiled
from tests.test_house import imports_of, read

PACKAGE = Path(pymoo_gpuaco.__file__).parent
DRAW = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    {before}
    import numpy as np
    from pymoo_gpuaco.runtime.philox import new_stream
    assert new_stream(np.uint64(7), 3, 1)[4] == 3
for warned in caught:
    if "pymoo_gpuaco" in str(warned.message):
        print(warned.message)
"""


def draw(tmp_path, before="", **environment):
    """A stream of numbers is begun in a new process; the warnings that it gave."""
    run = subprocess.run(
        [sys.executable, "-c", DRAW.format(before=before)],
        capture_output=True,
        text=True,
        timeout=600,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent), "TMPDIR": str(tmp_path), **environment},
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


def test_a_second_process_finds_what_the_first_has_kept_and_a_third_does_without_it(tmp_path):
    cache = tmp_path / "cache"
    assert draw(tmp_path, NUMBA_CACHE_DIR=str(cache)) == []
    kept = list(cache.rglob("*.nbc"))
    assert kept
    times = [file.stat().st_mtime_ns for file in kept]
    assert draw(tmp_path, NUMBA_CACHE_DIR=str(cache)) == []
    assert [file.stat().st_mtime_ns for file in kept] == times
    for file in cache.rglob("*.nb[ic]"):
        file.write_bytes(file.read_bytes()[:100])
    warned = draw(tmp_path, NUMBA_CACHE_DIR=str(cache))
    assert len(warned) == 1
    assert "could not be read" in warned[0]


LENGTH = """
from pymoo_gpuaco.problems import TSP
print(TSP([[0.0, 0.0], [30.0, 0.0], [30.0, 40.0]], metric="GEO").tour_length([0, 1, 2]))
"""


def test_code_that_was_kept_by_other_sources_is_not_used(tmp_path):
    # lengths are compiled in summation.py, with the formulas and constants of metrics.py
    copy = tmp_path / "copy"
    shutil.copytree(PACKAGE, copy / "pymoo_gpuaco", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(copy)}

    def length():
        run = subprocess.run(
            [sys.executable, "-c", LENGTH],
            capture_output=True,
            text=True,
            timeout=600,
            cwd=tmp_path,
            env={**os.environ, **environment},
            check=True,
        )
        return float(run.stdout)

    before = length()
    metrics = copy / "pymoo_gpuaco" / "problems" / "metrics.py"
    text = metrics.read_text(encoding="utf-8")
    assert "GEO_RADIUS_KM = 6378.388\n" in text
    metrics.write_text(
        text.replace("GEO_RADIUS_KM = 6378.388\n", "GEO_RADIUS_KM = 3000.0\n"), encoding="utf-8"
    )
    assert length() < 0.5 * before


def test_the_key_follows_from_all_that_compiled_code_imports():
    modules = read(PACKAGE)
    wanted = [
        name
        for name, path in modules.items()
        if "runtime.compiled import" in path.read_text(encoding="utf-8")
    ]
    assert len(wanted) > 30
    needed = set(wanted)
    while wanted:
        for one in imports_of(wanted.pop(), modules):
            if one.target in modules and one.target not in needed:
                needed.add(one.target)
                wanted.append(one.target)
    files = {modules[name].relative_to(PACKAGE).as_posix() for name in needed}
    assert "problems/metrics.py" in files
    assert files <= {name for name, _ in compiled_from()}


def test_the_other_process_ends_with_the_one_that_asked(tmp_path):
    """Whose end of the pipe closes, however it ends; else it would compile for ten seconds, and keep that."""
    folders = json.dumps([str(folder) for folder in sys.path])
    process = subprocess.Popen(
        [sys.executable, "-c", warm_up._PROGRAM, folders, "compile_recombination"],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        stdin=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(300) == 0
    assert not list(tmp_path.rglob("*.nbc"))


def test_what_numba_was_asked_not_to_compile_needs_no_compiling(monkeypatch):
    """NUMBA_DISABLE_JIT leaves plain functions, and a default run asks whether its own are kept."""
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    assert not must_be_compiled(lambda: None)


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of file sizes")
def test_a_full_disk_is_one_warning(tmp_path):
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))"
    warned = draw(tmp_path, full, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert len(warned) == 1
    assert "could not be stored" in warned[0]
    assert "NUMBA_CACHE_DIR" in warned[0]


def nowhere(tmp_path):
    """A copy of the package, and an environment, in which numba finds no folder: files stand in the way."""
    copy = tmp_path / "copy"
    shutil.copytree(PACKAGE, copy / "pymoo_gpuaco", ignore=shutil.ignore_patterns("__pycache__"))
    for path in copy.rglob("__init__.py"):
        (path.parent / "__pycache__").write_text("")
    block = tmp_path / "file"
    block.write_text("")
    return {
        "PYTHONPATH": str(copy),
        "NUMBA_CACHE_DIR": str(block / "cache"),
        "XDG_CACHE_HOME": str(block / "xdg"),
        "HOME": str(block / "home"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the user's folder is elsewhere")
def test_without_any_folder_code_is_compiled_each_time(tmp_path):
    warned = draw(tmp_path, **nowhere(tmp_path))
    assert len(warned) == 1
    assert "compiled in every process" in warned[0]
