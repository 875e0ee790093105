"""Compilers of kernels and their cache, and what fails. No GPU is needed: a script stands in for nvcc."""

from __future__ import annotations

import contextlib
import errno
import importlib
import logging
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pymoo_gpuaco.backends import BackendUnavailable
from pymoo_gpuaco.backends.cuda.device import compile as compiler
from pymoo_gpuaco.backends.cuda.device import nvrtc
from tests.interrupts import wait_until


def program(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


#: a stand-in for nvcc: notes each run in a file ``runs`` and writes some code
COMPILES = """[ "$1" = --version ] && echo release 12.0 && exit 0
echo run >> "{runs}"
while [ "$1" != -o ]; do shift; done
printf 'machine code' > "$2"
"""
FILE = "tours/tours.cu"


@pytest.fixture
def nvcc(tmp_path, monkeypatch):
    """Replace nvcc by a script; return a function of the script, and the list of runs it leaves."""
    if os.name != "posix":
        pytest.skip("the stand-in for nvcc is a shell script")
    monkeypatch.setenv("PYMOO_GPUACO_CACHE", str(tmp_path / "cache"))

    def be(script: str) -> None:
        compiler.compiler_version.cache_clear()
        monkeypatch.setenv("PYMOO_GPUACO_NVCC", program(tmp_path / "nvcc", script))

    be(COMPILES.format(runs=tmp_path / "runs"))
    return be


def compiled() -> bytes:
    return compiler.compile_files("sm_90", {FILE: {}})[FILE]


def runs(tmp_path: Path) -> int:
    return len((tmp_path / "runs").read_text().split())


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            "yes a long complaint | head -c 100000 >&2; exit 1",
            r"tours\.cu \(exit status 1\):\na long complaint",
        ),
        ("exit 4", r"could not compile tours/tours\.cu \(exit status 4\)$"),
        ("kill -9 $$", r"ended by signal 9; perhaps the system is short of memory\)$"),
        (
            "sleep 60 & sleep 60",
            r"did not compile tours/tours\.cu within 0\.5 s and was stopped; try it by hand: .*-o",
        ),
    ],
    ids=["fails", "fails without a word", "is killed", "hangs"],
)
def test_a_compiler_that_fails_says_so_shortly(script, words, nvcc, monkeypatch):
    nvcc(f'[ "$1" = --version ] && echo release 12.0 && exit 0\n{script}')
    if "sleep" in script:
        monkeypatch.setattr(compiler, "TIMEOUT", 0.5)
    with pytest.raises(BackendUnavailable, match=words) as raised:
        compiler.compile_files("sm_90", {FILE: {}, "walks/construct.cu": {}})
    assert len(str(raised.value)) < 2000


def test_a_compiler_that_does_not_tell_its_version_is_not_waited_for(nvcc, monkeypatch):
    nvcc("sleep 60")
    monkeypatch.setattr(compiler, "VERSION_TIMEOUT", 0.2)
    with pytest.raises(BackendUnavailable, match=r"--version fails \(.*timed out"):
        compiled()


def has_ended(number: str) -> bool:
    """Return True once the process is gone or waits to be reaped: a killed one still runs for a moment."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{number}/stat").read_text().split()[2] in "ZX"
    return True


def test_an_interrupt_ends_all_compilers(nvcc, monkeypatch, tmp_path):
    nvcc(
        '[ "$1" = --version ] && echo release 12.0 && exit 0\n'
        f'(sleep 300; touch "{tmp_path}/done") &\necho $! >> "{tmp_path}/started"\nwait'
    )

    def strike(_: object) -> bytes:
        started = tmp_path / "started"
        while not started.exists() or len(started.read_text().split()) < 2:
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(compiler._Compilation, "code", strike)
    with pytest.raises(KeyboardInterrupt):
        compiler.compile_files("sm_90", {FILE: {}, "walks/construct.cu": {}})
    assert not (tmp_path / "done").exists()
    for number in (tmp_path / "started").read_text().split():
        wait_until(lambda number=number: has_ended(number))


def test_compilers_of_an_abandoned_set_up_end_with_the_process(nvcc, tmp_path):
    script = f'touch "{tmp_path}/started"; sleep 20; touch "{tmp_path}/done"'
    nvcc(f'[ "$1" = --version ] && echo release 12.0 && exit 0\n{script}')
    work = (
        "import time; from pathlib import Path\n"
        "from pymoo_gpuaco.backends.cuda.device.compile import compile_files\n"
        "from pymoo_gpuaco.runtime.background import BackgroundTask\n"
        f"task = BackgroundTask(lambda: compile_files('sm_90', {{{FILE!r}: {{}}}}))\n"
        f"while not Path({str(tmp_path / 'started')!r}).exists(): time.sleep(0.01)\n"
    )
    result = subprocess.run([sys.executable, "-c", work], timeout=300)
    assert result.returncode == 0
    assert not (tmp_path / "done").exists()
    running = subprocess.run(["ps", "-ww", "-eo", "stat,args"], capture_output=True, text=True).stdout
    assert not [line for line in running.splitlines() if str(tmp_path) in line and line[0] != "Z"]


@pytest.mark.parametrize(
    "damage", [b"", b"machine co", b"nachine code" + bytes(32)], ids=["empty", "cut", "changed"]
)
def test_a_damaged_cache_entry_is_compiled_again_and_replaced(damage, nvcc, tmp_path):
    assert compiled() == b"machine code"
    assert compiled() == b"machine code"
    assert runs(tmp_path) == 1
    (entry,) = (tmp_path / "cache").iterdir()
    whole = entry.read_bytes()
    entry.write_bytes(damage)
    assert compiled() == b"machine code"
    assert entry.read_bytes() == whole
    assert runs(tmp_path) == 2
    assert compiled() == b"machine code"
    assert runs(tmp_path) == 2


@pytest.mark.parametrize("full", [False, True], ids=["a file in the way", "a full disk"])
def test_a_cache_that_cannot_be_written_is_one_warning(full, nvcc, tmp_path, monkeypatch, caplog):
    def no_space(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    caplog.set_level(logging.WARNING, "pymoo_gpuaco")
    if full:
        monkeypatch.setattr(compiler.os, "replace", no_space)
    else:
        (tmp_path / "cache").write_text("")
    for _ in range(2):
        assert compiled() == b"machine code"
    assert runs(tmp_path) == 2
    (said,) = [record.getMessage() for record in caplog.records]
    assert "could not be cached" in said
    assert ("No space left" in said) == full
    assert "set PYMOO_GPUACO_CACHE" in said
    assert not full or list((tmp_path / "cache").iterdir()) == []


def test_processes_that_compile_the_same_leave_one_whole_entry(nvcc, tmp_path):
    work = (
        "from pymoo_gpuaco.backends.cuda.device.compile import compile_files\n"
        f"assert compile_files('sm_90', {{{FILE!r}: {{}}}})[{FILE!r}] == b'machine code'\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", work]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    (entry,) = (tmp_path / "cache").iterdir()
    before = runs(tmp_path)
    assert compiled() == b"machine code"
    assert runs(tmp_path) == before
    assert entry.stat().st_size == len(b"machine code") + 32


# ---- without nvcc: NVRTC


@pytest.fixture
def no_nvcc(monkeypatch):
    def missing():
        raise BackendUnavailable("nvcc was not found")

    monkeypatch.delenv("PYMOO_GPUACO_NVCC", raising=False)
    monkeypatch.setattr(compiler, "nvcc_path", missing)


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A folder on the path as NVIDIA's wheels lay it out."""

    def make(*files):
        for file in files:
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_bytes(b"")
        monkeypatch.setattr(sys, "path", [str(tmp_path)])
        monkeypatch.delitem(sys.modules, "nvidia", raising=False)
        importlib.invalidate_caches()
        return tmp_path

    yield make
    sys.modules.pop("nvidia", None)


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.9"], 0),
        (["nvidia/cu13/lib/libnvrtc.so.13"], 0),
        (["nvidia/cuda_nvrtc/bin/nvrtc-builtins64_129.dll", "nvidia/cuda_nvrtc/bin/nvrtc64_120_0.dll"], 1),
        (["nvidia/cublas/lib/libcublas.so.12"], None),
        ([], None),
    ],
)
def test_the_library_is_found_in_the_wheels(wheel, files, found):
    folder = wheel(*files)
    assert nvrtc.library() == (None if found is None else str(folder / files[found]))


def test_nvcc_comes_first_and_nvrtc_where_it_is_missing(no_nvcc, monkeypatch):
    monkeypatch.setattr(nvrtc, "library", lambda: "/somewhere/libnvrtc.so.12")
    command = compiler.compiler_command()
    assert command == (sys.executable, "-I", nvrtc.__file__, "/somewhere/libnvrtc.so.12")
    assert compiler.compiler_name(command) == "NVRTC"
    monkeypatch.setattr(compiler, "nvcc_path", lambda: "/usr/bin/nvcc")
    assert compiler.compiler_command() == ("/usr/bin/nvcc",)


def test_without_either_and_with_a_wrong_choice_it_is_reported(no_nvcc, monkeypatch):
    monkeypatch.setattr(nvrtc, "library", lambda: None)
    with pytest.raises(BackendUnavailable, match="nvcc was not found"):
        compiler.compiler_command()
    assert compiler.describe_compiler() == "none: nvcc was not found"
    monkeypatch.setattr(nvrtc, "library", lambda: "/somewhere/libnvrtc.so.12")
    monkeypatch.setenv("PYMOO_GPUACO_NVCC", "/nowhere/nvcc")  # who names a compiler wants no other
    with pytest.raises(BackendUnavailable):
        compiler.compiler_command()
