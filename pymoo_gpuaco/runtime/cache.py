"""The folder of files that may be made or downloaded again: compiled kernels and instances."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """Return PYMOO_GPUACO_CACHE, else a folder in XDG_CACHE_HOME, by default in ~/.cache."""
    chosen = os.environ.get("PYMOO_GPUACO_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    # not Path.home, which raises an error for a user without a home
    return Path(base or os.path.join(os.path.expanduser("~"), ".cache"), "pymoo_gpuaco")
