"""Versions of installed packages, for bug reports."""

from __future__ import annotations

import importlib.metadata
import platform

from pymoo_gpuaco._version import __version__
from pymoo_gpuaco.backends import cuda_devices, why_no_cuda
from pymoo_gpuaco.backends.cuda.device.compile import describe_compiler
from pymoo_gpuaco.runtime.threads import thread_count

_PACKAGES = ("pymoo", "numpy", "scipy", "matplotlib", "pycuda", "distributed")


def _package(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def describe() -> str:
    """Return versions, number of threads, CUDA devices and, if CUDA is not usable, what is missing."""
    rows = [
        ("pymoo_gpuaco", __version__),
        ("Python", platform.python_version()),
        ("system", platform.platform()),
    ]
    rows += [(name, _package(name)) for name in _PACKAGES]
    rows += [("CPU threads", str(thread_count())), ("CUDA compiler", describe_compiler())]
    for number, device in enumerate(cuda_devices()):
        rows.append((f"CUDA device {number}", device))
    missing = why_no_cuda()
    rows.append(("CUDA backend", "usable" if missing is None else f"not usable: {missing}"))
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def show_versions() -> None:
    """Print ``describe()``."""
    print(describe())
