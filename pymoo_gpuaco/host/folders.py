"""Where compiled code is kept when nothing else can be written: a temporary folder that is this user's alone."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def place() -> Path:
    """Where the temporary folder is, if there is one."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"pymoo_gpuaco_{user}"


def temporary() -> Path | None:
    """A folder that lasts until the system clears temporary files, or None where none can be made.

    What lies in it is executed: a folder that others may write to, or that another user made, is not used.
    """
    folder = place()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        found = folder.lstat()
    except OSError:
        return None
    shared = hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o022)
    return folder if stat.S_ISDIR(found.st_mode) and not shared else None
