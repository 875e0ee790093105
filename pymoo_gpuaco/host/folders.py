"""A temporary folder that only this user can write to, for compiled code when no other folder is writable."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def temporary_path() -> Path:
    """Path of the temporary folder, whether or not it exists."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"pymoo_gpuaco_{user}"


def private_folder() -> Path | None:
    """Make the temporary folder and return it, or None where that fails.

    The code in it is executed. So a folder that another user made or can write to is refused.
    """
    folder = temporary_path()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        found = folder.lstat()
    except OSError:
        return None
    shared = hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o022)
    return folder if stat.S_ISDIR(found.st_mode) and not shared else None
