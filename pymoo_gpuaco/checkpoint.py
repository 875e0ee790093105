"""A run in a file, which is whole or not there, and whose damage is noticed.

The file is a line that names format and version, a line with the SHA-256 of the rest, and a pickle. As with every
pickle, load only what you trust: the checksum tells damage, not intent.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import tempfile
from os import PathLike
from pathlib import Path
from typing import Any

__all__ = ["load", "save"]

_FORMAT = b"pymoo_gpuaco run "
_VERSION = 1


def save(algorithm: Any, path: str | PathLike[str]) -> None:
    """Write an algorithm to a file, so that ``load`` gives one that goes on as if it had never stopped.

    The file at ``path`` is replaced at once when the new one is complete and on the disk: a process that is killed
    meanwhile leaves the old one. Raises OSError where it cannot be written.
    """
    target = Path(path)
    body = pickle.dumps(algorithm)
    head = _FORMAT + b"%d\n" % _VERSION + hashlib.sha256(body).hexdigest().encode() + b"\n"
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(head)
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def load(path: str | PathLike[str]) -> Any:
    """Read an algorithm that ``save`` has written.

    Raises FileNotFoundError for a missing file, and ValueError naming the file where it is no such file, damaged, or
    written by a later version of the format.
    """
    data = Path(path).read_bytes()
    first, _, rest = data.partition(b"\n")
    if not first.startswith(_FORMAT) or not first[len(_FORMAT) :].isdigit():
        raise ValueError(
            f"{path}: it is no file that pymoo_gpuaco.checkpoint.save has written, or it is damaged"
        )
    version = int(first[len(_FORMAT) :])
    if version != _VERSION:
        raise ValueError(
            f"{path}: it has version {version} of the format, and this pymoo_gpuaco reads {_VERSION}"
        )
    told, _, body = rest.partition(b"\n")
    if told != hashlib.sha256(body).hexdigest().encode():
        raise ValueError(f"{path}: it is damaged: its checksum is not that of its contents")
    return pickle.loads(body)
