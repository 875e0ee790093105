"""Compilation of source files by nvcc, cached on disk; PyCUDA is not required.

The cache key covers the source and its includes, the options, the architecture and the version of nvcc.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pymoo_gpuaco.backends.cuda.device import sources
from pymoo_gpuaco.backends.errors import BackendUnavailable
from pymoo_gpuaco.runtime import background, compiling
from pymoo_gpuaco.runtime.notices import warn_once

_OPTIONS = ("-O3", "-std=c++17", "-cubin", "--ftz=true", "-lineinfo")
TIMEOUT = 900.0  # s after which a compilation is aborted; a file takes some seconds on one core
VERSION_TIMEOUT = 60.0  # s, for ``--version``
_MOST_OUTPUT = 1500  # maximum characters of nvcc's output in an error message
_DIGEST = 32  # bytes of the checksum at the end of a cached file


def nvcc_path() -> str:
    """Return the path of nvcc, by PYMOO_GPUACO_NVCC, CUDA_HOME, CUDA_PATH, PATH, then /usr/local/cuda.

    Raises BackendUnavailable if it is missing.
    """
    chosen = os.environ.get("PYMOO_GPUACO_NVCC")
    if chosen:
        if shutil.which(chosen) is None:
            raise BackendUnavailable(f"PYMOO_GPUACO_NVCC names no program: {chosen!r}")
        return chosen
    toolkits = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    folders = [os.path.join(folder, "bin") for folder in toolkits if folder]
    folders += [os.environ.get("PATH", os.defpath), "/usr/local/cuda/bin"]
    found = shutil.which("nvcc", path=os.pathsep.join(folders))
    if found is None:
        raise BackendUnavailable(
            "nvcc, the compiler of the CUDA toolkit, was not found; install the toolkit "
            "(https://developer.nvidia.com/cuda-downloads, or conda install -c nvidia cuda-nvcc) "
            "and put nvcc on PATH or set CUDA_HOME"
        )
    return found


def describe_compiler() -> str:
    """Return the version and path of nvcc, or why there is none."""
    try:
        path = nvcc_path()
        output = nvcc_version(path)
    except BackendUnavailable as error:
        return f"none: {error}"
    release = [line.strip() for line in output.splitlines() if "release" in line]
    return f"nvcc: {release[-1] if release else 'version unknown'} ({path})"


@functools.cache
def nvcc_version(path: str) -> str:
    """Return the output of ``nvcc --version``. Raises BackendUnavailable if nvcc does not run."""
    try:
        return subprocess.run(
            [path, "--version"], capture_output=True, text=True, check=True, timeout=VERSION_TIMEOUT
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise BackendUnavailable(f"{path} --version fails ({error}); reinstall the CUDA toolkit") from error


def cache_folder() -> Path:
    """Return the folder of compiled kernels: PYMOO_GPUACO_CACHE, else the user's cache folder."""
    chosen = os.environ.get("PYMOO_GPUACO_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return Path(base or Path.home() / ".cache", "pymoo_gpuaco")


_running: set[subprocess.Popen[str]] = set()  # compilers to kill at the exit of this process


@background.at_exit
def _kill_all() -> None:
    """Kill all compilers."""
    for process in list(_running):
        _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill a running command and its children."""
    if process.poll() is None:
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()


@contextlib.contextmanager
def _started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Start a command; kill it at the end of the with block if it still runs."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # so that its children can be killed as well
    ) as process:
        _running.add(process)
        try:
            background.check_not_exiting()
            yield process
        finally:
            _kill(process)
            _running.discard(process)


def compile_files(
    arch: str, wanted: Mapping[str, Mapping[str, object]], meanwhile: Callable[[], object] = lambda: None
) -> dict[str, bytes]:
    """Return the machine code of .cu files for ``arch`` ("sm_90"), from the cache or by parallel compilations.

    ``wanted`` maps files to definitions. ``meanwhile`` is called while the compilers run. If one fails, or on an
    interrupt, all are killed. Raises BackendUnavailable.
    """
    nvcc, folder = nvcc_path(), sources.folder()
    deadline = time.monotonic() + TIMEOUT
    code: dict[str, bytes] = {}
    started: dict[str, tuple[subprocess.Popen[str], Path, Path]] = {}
    with contextlib.ExitStack() as ends:
        for file, definitions in wanted.items():
            options = [*_OPTIONS, f"-arch={arch}"]
            options += [f"-D{key}={value}" for key, value in sorted(definitions.items())]
            entry = _entry(nvcc, options, file)
            cached = _load_cached(entry)
            if cached is not None:
                code[file] = cached
                continue
            if not started:
                compiling.begin("the CUDA engine with nvcc")
                ends.callback(compiling.end)
            try:
                scratch = ends.enter_context(tempfile.TemporaryDirectory(prefix="pymoo_gpuaco_"))
                target = Path(scratch, "kernel.cubin")
                command = [nvcc, *options, f"-I{folder}", "-o", str(target), str(folder / file)]
                started[file] = ends.enter_context(_started(command)), target, entry
            except OSError as error:  # no space for temporary files, or the program no longer exists
                raise BackendUnavailable(f"nvcc could not compile {file} ({error})") from error
        meanwhile()
        for file, (process, target, entry) in started.items():
            code[file] = _finished(process, file, target, deadline)
            _store(entry, code[file])
    return code


def _finished(process: subprocess.Popen[str], file: str, target: Path, deadline: float) -> bytes:
    """Wait for the machine code of a file and return it.

    Raises BackendUnavailable with the output of nvcc if it fails.
    """
    try:
        output, _ = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
        if process.returncode == 0:
            return target.read_bytes()
    except subprocess.TimeoutExpired as error:
        raise BackendUnavailable(
            f"nvcc did not compile {file} within {TIMEOUT:g} s and was stopped; "
            f"try it by hand: {' '.join(error.cmd)}"
        ) from error
    except OSError as error:
        raise BackendUnavailable(f"nvcc could not compile {file} ({error})") from error
    background.check_not_exiting()
    how = f"exit status {process.returncode}"
    if process.returncode < 0:
        how = f"ended by signal {-process.returncode}; perhaps the system is short of memory"
    words = output.strip()
    if len(words) > _MOST_OUTPUT:
        words = f"{words[:_MOST_OUTPUT]} .."
    raise BackendUnavailable(f"nvcc could not compile {file} ({how})" + (f":\n{words}" if words else ""))


def _entry(nvcc: str, options: list[str], file: str) -> Path:
    """Return the path of a file's machine code in the cache."""
    parts = sources.with_includes(file), file, options, nvcc_version(nvcc)
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()
    return cache_folder() / f"{Path(file).stem}-{digest[:32]}.cubin"


def _load_cached(path: Path) -> bytes | None:
    """Return the code of a cache file, or None if it is missing or damaged."""
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    code, digest = whole[:-_DIGEST], whole[-_DIGEST:]
    return code if hashlib.sha256(code).digest() == digest else None


def _store(path: Path, code: bytes) -> None:
    """Write code and its checksum atomically, because another process may read or write the same file.

    If the cache is not writable, a warning is issued once.
    """
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(code + hashlib.sha256(code).digest())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        warn_once(
            f"compiled kernels could not be cached in {path.parent} ({error}): every run compiles them; set "
            "PYMOO_GPUACO_CACHE to a writable folder"
        )
