"""From a source file and its -D options to machine code, by nvcc, once: the result is kept on disk.

Needs no PyCUDA. A kernel's key covers its source and all that it includes, the options, the architecture and the
compiler's version.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pymoo_gpuaco.backends import compiling
from pymoo_gpuaco.backends.cuda.device import sources
from pymoo_gpuaco.backends.errors import BackendUnavailable

_log = logging.getLogger("pymoo_gpuaco")
_OPTIONS = ("-O3", "-std=c++17", "-cubin", "--ftz=true", "-lineinfo")


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
            "and put nvcc on PATH or set CUDA_HOME"
        )
    return found


@functools.cache
def nvcc_version(nvcc: str) -> str:
    """Return what ``nvcc --version`` prints. Raises BackendUnavailable if it does not run."""
    try:
        return subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise BackendUnavailable(f"{nvcc} --version fails ({error}); reinstall the CUDA toolkit") from error


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


def compile_file(name: str, arch: str, defines: Mapping[str, object] | None = None) -> bytes:
    """Return the machine code (cubin) of one .cu file for ``arch`` ("sm_90"), from the cache if it is there.

    Raises BackendUnavailable with the compiler's own words when it fails.
    """
    nvcc = nvcc_path()
    options = [*_OPTIONS, f"-arch={arch}"]
    options += [f"-D{key}={value}" for key, value in sorted((defines or {}).items())]
    digest = hashlib.sha256()
    for part in (
        sources.with_includes(name),
        name.encode(),
        repr(options).encode(),
        nvcc_version(nvcc).encode(),
    ):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    kept = cache_folder() / f"{Path(name).stem}-{digest.hexdigest()[:32]}.cubin"
    try:
        return kept.read_bytes()
    except OSError:
        pass
    compiling.begin("the CUDA engine with nvcc")
    try:
        code = run_nvcc(nvcc, options, name)
    finally:
        compiling.end()
    _keep(kept, code)
    return code


def run_nvcc(nvcc: str, options: list[str], name: str) -> bytes:
    """Return the machine code of one .cu file. Raises BackendUnavailable with the compiler's own words."""
    with tempfile.TemporaryDirectory(prefix="pymoo_gpuaco_") as scratch:
        target = os.path.join(scratch, "kernel.cubin")
        folder = sources.folder()  # includes are named from there
        command = [nvcc, *options, f"-I{folder}", "-o", target, str(folder / name)]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            raise BackendUnavailable(
                f"nvcc could not compile {name} (exit status {result.returncode}):\n"
                f"{' '.join(command)}\n{result.stdout}{result.stderr}"
            )
        return Path(target).read_bytes()


def _keep(path: Path, code: bytes) -> None:
    """Write at once or not at all: another process may read or write the same file.

    A cache that cannot be written is no error: the first time it is told.
    """
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(code)
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        _tell(f"compiled kernels could not be kept in {path.parent} ({error})")


@functools.cache
def _tell(what: str) -> None:
    _log.warning("%s: every run compiles them; set PYMOO_GPUACO_CACHE to a folder that can be written", what)


def compile_files(arch: str, wanted: Mapping[str, Mapping[str, object]]) -> dict[str, bytes]:
    """Compile several files side by side; ``wanted`` maps a file's name to its definitions."""
    with ThreadPoolExecutor(max_workers=max(1, len(wanted))) as pool:
        jobs = {name: pool.submit(compile_file, name, arch, defines) for name, defines in wanted.items()}
        return {name: job.result() for name, job in jobs.items()}
