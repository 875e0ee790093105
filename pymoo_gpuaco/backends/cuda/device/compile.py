"""Compilation of source files by nvcc or NVRTC, cached on disk; PyCUDA is not required.

The cache key covers the source and its includes, the options, the architecture and the compiler's version.
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
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from pymoo_gpuaco.backends.cuda.device import nvrtc, sources
from pymoo_gpuaco.backends.errors import BackendUnavailable
from pymoo_gpuaco.runtime import background, compiling
from pymoo_gpuaco.runtime.cache import cache_folder
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.notices import warn_once

_OPTIONS = ("-std=c++17", "--ftz=true", "--generate-line-info")
_OWN_OPTIONS = {"nvcc": "-cubin", "NVRTC": "-default-device"}  # the latter for lambdas in kernels
TIMEOUT = 900.0  # s after which a compilation is aborted; a file takes some seconds on one core
VERSION_TIMEOUT = 60.0  # s, for ``--version``
_MOST_OUTPUT = 1500  # maximum characters of the compiler's output in an error message
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
            "and put nvcc on PATH or set CUDA_HOME; or, without a toolkit, pip install nvidia-cuda-nvrtc-cu12"
        )
    return found


def compiler_command() -> tuple[str, ...]:
    """Return the command of the compiler: nvcc, else a Python process that calls NVRTC.

    Raises BackendUnavailable if both are missing, or if PYMOO_GPUACO_NVCC names no program.
    """
    try:
        return (nvcc_path(),)
    except BackendUnavailable as missing:
        library = None if os.environ.get("PYMOO_GPUACO_NVCC") else nvrtc.library()
        if library is not None:
            return (sys.executable, "-I", str(Path(nvrtc.__file__)), library)
        raise missing from None


def compiler_name(command: tuple[str, ...]) -> str:
    """Return the name of the compiler of a command."""
    return "nvcc" if len(command) == 1 else "NVRTC"


def describe_compiler() -> str:
    """Return the name, version and path of the compiler, or why there is none."""
    try:
        command = compiler_command()
        output = compiler_version(command)
    except BackendUnavailable as error:
        return f"none: {error}"
    release = [line.strip() for line in output.splitlines() if "release" in line]
    return f"{compiler_name(command)}: {release[-1] if release else 'version unknown'} ({command[-1]})"


@functools.cache
def compiler_version(command: tuple[str, ...]) -> str:
    """Return the output of ``--version``. Raises BackendUnavailable if the compiler does not run."""
    try:
        return subprocess.run(
            [*command, "--version"], capture_output=True, text=True, check=True, timeout=VERSION_TIMEOUT
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise BackendUnavailable(
            f"{command[-1]} --version fails ({error}); reinstall the CUDA toolkit"
        ) from error


_CACHE_BYTES = 1 << 28  # maximum size of the cache: thousands of kernels
_running: set[subprocess.Popen[str]] = set()  # compilers to kill at the exit of this process
_starting = threading.Lock()


@background.at_exit
def _kill_all() -> None:
    """Kill all compilers."""
    with _starting:
        for process in _running:
            _kill(process)


def _reset_after_fork() -> None:
    """Forget the compilers, which belong to the parent process."""
    global _starting
    _running.clear()
    _starting = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill a running command and its children."""
    if process.poll() is None:
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()


class _Compilation:
    """A running compilation of one .cu file."""

    def __init__(self, command: Sequence[str], options: list[str], compiler: str, file: str) -> None:
        self._compiler, self._file = compiler, file
        self._deadline = CLOCK.monotonic() + TIMEOUT
        try:
            self._scratch = tempfile.TemporaryDirectory(prefix="pymoo_gpuaco_")
            self._target = Path(self._scratch.name, "kernel.cubin")
            folder = sources.folder()  # include path
            self._command = [*command, "-o", str(self._target), *options, f"-I{folder}", str(folder / file)]
            with _starting:
                background.check_not_exiting()
                # a separate session, so that its children can be killed as well
                self._process = subprocess.Popen(
                    self._command,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    start_new_session=True,
                )
                _running.add(self._process)
        except OSError as error:  # no space for temporary files, or the program no longer exists
            raise BackendUnavailable(f"{compiler} could not compile {file} ({error})") from error

    def code(self) -> bytes:
        """Wait for the machine code and return it.

        Raises BackendUnavailable with the compiler's output if it fails.
        """
        try:
            output, _ = self._process.communicate(timeout=max(0.0, self._deadline - CLOCK.monotonic()))
            if self._process.returncode == 0:
                return self._target.read_bytes()
        except subprocess.TimeoutExpired as error:
            raise BackendUnavailable(
                f"{self._compiler} did not compile {self._file} within {TIMEOUT:g} s and was stopped; "
                f"try it by hand: {' '.join(self._command)}"
            ) from error
        except OSError as error:
            raise BackendUnavailable(f"{self._compiler} could not compile {self._file} ({error})") from error
        background.check_not_exiting()
        status = self._process.returncode
        how = f"exit status {status}"
        if status < 0:
            how = f"ended by signal {-status}; perhaps the system is short of memory"
        words = output.strip()
        if len(words) > _MOST_OUTPUT:
            words = f"{words[:_MOST_OUTPUT]} .."
        raise BackendUnavailable(
            f"{self._compiler} could not compile {self._file} ({how})" + (f":\n{words}" if words else "")
        )

    def end(self) -> None:
        """Kill the compiler if it still runs, and remove its files."""
        _kill(self._process)
        _running.discard(self._process)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._scratch.cleanup()


def compile_files(arch: str, wanted: Mapping[str, Mapping[str, object]]) -> dict[str, bytes]:
    """Return the machine code of .cu files for ``arch`` ("sm_90"), from the cache or by parallel compilations.

    ``wanted`` maps files to definitions. If one fails, or on an
    interrupt, all are killed. Raises BackendUnavailable.
    """
    command = compiler_command()
    compiler = compiler_name(command)
    code: dict[str, bytes] = {}
    started: dict[str, tuple[_Compilation, Path]] = {}
    with contextlib.ExitStack() as ends:
        for file, definitions in wanted.items():
            options = [_OWN_OPTIONS[compiler], *_OPTIONS, f"--gpu-architecture={arch}"]
            options += [f"-D{key}={value}" for key, value in sorted(definitions.items())]
            entry = _entry(command, options, file)
            cached = _load_cached(entry)
            if cached is not None:
                code[file] = cached
                continue
            if not started:
                compiling.begin(f"the CUDA engine with {compiler}")
                ends.callback(compiling.end)
            started[file] = _Compilation(command, options, compiler, file), entry
            ends.callback(started[file][0].end)
        for file, (compilation, entry) in started.items():
            code[file] = compilation.code()
            _store(entry, code[file])
    return code


def _entry(command: tuple[str, ...], options: list[str], file: str) -> Path:
    """Return the path of a file's machine code in the cache."""
    parts = sources.with_includes(file), file, options, compiler_version(command)
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()
    return cache_folder() / f"{Path(file).stem}-{digest[:32]}.cubin"


def _load_cached(path: Path) -> bytes | None:
    """Return the code of a cache file, or None if it is missing or damaged."""
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # `_store` deletes files that have not been used for longest
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
        _limit_cache(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        warn_once(
            f"compiled kernels could not be cached in {path.parent} ({error}): every run compiles them; set "
            "PYMOO_GPUACO_CACHE to a writable folder"
        )


def _limit_cache(folder: Path) -> None:
    """Delete files that have not been used for longest, until `_CACHE_BYTES` are left."""
    known = sorted(
        ((file.stat(), file) for file in folder.glob("*.cubin")), key=lambda pair: -pair[0].st_mtime
    )
    size = 0
    for stat, file in known:
        size += stat.st_size
        if size > _CACHE_BYTES:
            file.unlink(missing_ok=True)
