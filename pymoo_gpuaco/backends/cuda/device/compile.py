"""From a source file and its -D options to machine code, by nvcc or NVRTC, once: the result is kept on disk.

Needs no PyCUDA. A kernel's key covers its source and all that it includes, the options, the architecture and the
compiler's version.
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
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pymoo_gpuaco.backends.cuda.device import nvrtc, sources
from pymoo_gpuaco.backends.errors import BackendUnavailable
from pymoo_gpuaco.host import compiling
from pymoo_gpuaco.host.notices import warn_once

_OPTIONS = ("-O3", "-std=c++17", "-cubin", "--ftz=true", "-lineinfo")
# Seconds after which a compiler counts as hung; a file takes some seconds on one core.
LONGEST = 900.0
LONGEST_ANSWER = 60.0  # to the question which version it is
_MOST_WORDS = 1500  # of a compiler's, that an error shows
_DIGEST = 32  # bytes of the checksum at the end of a kept file


def nvcc_path() -> str:
    """Return the compiler: PYMOO_GPUACO_NVCC, CUDA_HOME, CUDA_PATH, PATH, then /usr/local/cuda.

    Raises BackendUnavailable if there is none.
    """
    chosen = os.environ.get("PYMOO_GPUACO_NVCC")
    if chosen:
        if shutil.which(chosen) is None:
            raise BackendUnavailable(f"PYMOO_GPUACO_NVCC names no program: {chosen!r}")
        return chosen
    folders = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    for folder in folders:
        found = shutil.which("nvcc", path=os.path.join(folder, "bin")) if folder else None
        if found:
            return found
    found = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if found is None:
        raise BackendUnavailable(
            "nvcc, the compiler of the CUDA toolkit, was not found; install the toolkit "
            "(https://developer.nvidia.com/cuda-downloads, or conda install -c nvidia cuda-nvcc) "
            "and put nvcc on PATH or set CUDA_HOME; or, without a toolkit, pip install nvidia-cuda-nvrtc-cu12"
        )
    return found


def compiler_command() -> tuple[str, ...]:
    """Return the command that compiles: nvcc, or where it is missing a process of Python's that calls NVRTC.

    Raises BackendUnavailable if there is neither, or PYMOO_GPUACO_NVCC names no program.
    """
    try:
        return (nvcc_path(),)
    except BackendUnavailable as missing:
        library = None if os.environ.get("PYMOO_GPUACO_NVCC") else nvrtc.library()
        if library is not None:
            return (sys.executable, "-I", str(Path(nvrtc.__file__)), library)
        raise missing from None


def compiler_name(command: tuple[str, ...]) -> str:
    """Return what the program of such a command is called."""
    return "nvcc" if len(command) == 1 else "NVRTC"


def describe_compiler() -> str:
    """Return which compiler is used and where it is, or that there is none."""
    try:
        command = compiler_command()
        said = compiler_version(command)
    except BackendUnavailable as error:
        return f"none: {error}"
    release = [line.strip() for line in said.splitlines() if "release" in line]
    return f"{compiler_name(command)}: {release[-1] if release else 'version unknown'} ({command[-1]})"


@functools.cache
def compiler_version(command: tuple[str, ...]) -> str:
    """Return what the compiler says of its version. Raises BackendUnavailable if it does not run."""
    try:
        return subprocess.run(
            [*command, "--version"], capture_output=True, text=True, check=True, timeout=LONGEST_ANSWER
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise BackendUnavailable(
            f"{command[-1]} --version fails ({error}); reinstall the CUDA toolkit"
        ) from error


def cache_folder() -> Path:
    """Return where compiled kernels are kept: PYMOO_GPUACO_CACHE, else the user's cache folder."""
    chosen = os.environ.get("PYMOO_GPUACO_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "pymoo_gpuaco"


class Runs:
    """Compilers at work, which end when nobody waits for them any more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at_work: set[subprocess.Popen[str]] = set()
        self._over = False

    def run(self, command: list[str]) -> tuple[int, str]:
        """Return a command's exit status and what it said. Raises subprocess.TimeoutExpired, OSError."""
        # a session of its own, to end with it the programs that it starts
        with self._lock:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
            )
            self._at_work.add(process)
            if self._over:
                _kill(process)
        with process:
            try:
                said, _ = process.communicate(timeout=LONGEST)
                return process.returncode, said
            finally:
                _kill(process)
                with self._lock:
                    self._at_work.discard(process)

    def end(self) -> None:
        """End all, those too that are about to start."""
        with self._lock:
            self._over = True
            for process in self._at_work:
                _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    """End a command that still runs, and what it has started."""
    if process.poll() is None:
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()


def compile_file(
    name: str, arch: str, defines: Mapping[str, object] | None = None, runs: Runs | None = None
) -> bytes:
    """Return the machine code (cubin) of one .cu file for ``arch`` ("sm_90"), from the cache if it is there.

    Raises BackendUnavailable with the compiler's own words when it fails.
    """
    command = compiler_command()
    options = [*_OPTIONS, f"-arch={arch}"]
    options += [f"-D{key}={value}" for key, value in sorted((defines or {}).items())]
    digest = hashlib.sha256()
    for part in (
        sources.with_includes(name),
        name.encode(),
        repr(options).encode(),
        compiler_version(command).encode(),
    ):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    kept = cache_folder() / f"{Path(name).stem}-{digest.hexdigest()[:32]}.cubin"
    found = _kept(kept)
    if found is not None:
        return found
    compiling.begin(f"the CUDA engine with {compiler_name(command)}")
    try:
        code = run_compiler(command, options, name, Runs() if runs is None else runs)
    finally:
        compiling.end()
    _keep(kept, code)
    return code


def run_compiler(compiler: tuple[str, ...], options: list[str], name: str, runs: Runs) -> bytes:
    """Return the machine code of one .cu file. Raises BackendUnavailable with the compiler's own words."""
    try:
        with tempfile.TemporaryDirectory(prefix="pymoo_gpuaco_") as scratch:
            target = os.path.join(scratch, "kernel.cubin")
            folder = sources.folder()  # includes are named from there
            command = [*compiler, *options, f"-I{folder}", "-o", target, str(folder / name)]
            status, said = runs.run(command)
            if status == 0:
                return Path(target).read_bytes()
    except subprocess.TimeoutExpired as error:
        raise BackendUnavailable(
            f"{compiler_name(compiler)} did not compile {name} within {LONGEST:g} s and was ended; "
            f"try it by hand: {' '.join(command)}"
        ) from error
    except OSError as error:  # no room for temporary files, no such program any more
        raise BackendUnavailable(f"{compiler_name(compiler)} could not compile {name} ({error})") from error
    how = f"exit status {status}"
    if status < 0:
        how = f"ended by signal {-status}; perhaps the system is short of memory"
    words = said.strip()
    if len(words) > _MOST_WORDS:
        words = f"{words[:_MOST_WORDS]} .."
    raise BackendUnavailable(
        f"{compiler_name(compiler)} could not compile {name} ({how})" + (f":\n{words}" if words else "")
    )


def _kept(path: Path) -> bytes | None:
    """Return the code in a file, or None where there is none or it is not what was written."""
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    code, digest = whole[:-_DIGEST], whole[-_DIGEST:]
    return code if hashlib.sha256(code).digest() == digest else None


def _keep(path: Path, code: bytes) -> None:
    """Write code and its checksum, at once or not at all: another process may read or write the same file.

    A cache that cannot be written is no error: the first time it is told.
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
            f"compiled kernels could not be kept in {path.parent} ({error}): every run compiles them; set "
            "PYMOO_GPUACO_CACHE to a folder that can be written"
        )


def compile_files(arch: str, wanted: Mapping[str, Mapping[str, object]]) -> dict[str, bytes]:
    """Compile several files side by side; ``wanted`` maps a file's name to its definitions.

    Where one fails, or an interrupt comes, the compilers of the others end too.
    """
    runs = Runs()
    with ThreadPoolExecutor(max_workers=max(1, len(wanted))) as pool:
        jobs = {
            name: pool.submit(compile_file, name, arch, defines, runs) for name, defines in wanted.items()
        }
        try:
            return {name: job.result() for name, job in jobs.items()}
        except BaseException:
            runs.end()
            raise
