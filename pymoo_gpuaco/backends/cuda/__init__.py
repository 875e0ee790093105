"""The CUDA engine, through PyCUDA. Importing this package needs no GPU and touches none."""

from __future__ import annotations

import functools
import importlib.util
import shutil
from typing import Any


@functools.cache
def why_unavailable() -> str | None:
    """Say what is missing for this backend, and how to get it; None if it can run."""
    if importlib.util.find_spec("pycuda") is None:
        return "PyCUDA is not installed (pip install 'pymoo-gpuaco[cuda]')"
    try:
        import pycuda.driver as driver

        driver.init()
    except ImportError as error:
        return f"the NVIDIA driver's library cannot be loaded ({error}); install the NVIDIA driver"
    except Exception as error:  # pycuda's own error classes live in the module that may not load
        return f"the NVIDIA driver does not start ({error})"
    if driver.Device.count() == 0:
        return "the NVIDIA driver sees no CUDA device"
    if shutil.which("nvcc") is None:
        return "nvcc, which compiles the kernels, is not on the PATH (install the CUDA toolkit)"
    return None


def devices() -> list[dict[str, Any]]:
    """Name, compute capability, memory in bytes and driver of each device; empty where there is none."""
    if why_unavailable() is not None:
        return []
    import pycuda.driver as driver

    found = []
    for number in range(driver.Device.count()):
        device = driver.Device(number)
        found.append(
            {
                "name": device.name(),
                "compute_capability": device.compute_capability(),
                "memory": device.total_memory(),
                "driver": driver.get_driver_version(),
            }
        )
    return found
