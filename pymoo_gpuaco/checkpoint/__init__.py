"""A run in a file: a zip of plain arrays and their description, which runs no code when it is read."""

from __future__ import annotations

import io
import json
import zipfile
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from pymoo_gpuaco.checkpoint.records import objects_of, records_of
from pymoo_gpuaco.problems.writing import write_whole

__all__ = ["load", "save"]

FORMAT = 3
_DESCRIPTION = "run.json"


def save(algorithm: Any, path: str | PathLike[str]) -> None:
    """Write an algorithm to a file, so that ``load`` gives one that goes on as if it had never stopped.

    The file at ``path`` is replaced at once when the new one is complete and on the disk: a process that is killed
    meanwhile leaves the old one. It is a zip of plain arrays (``np.load`` shows them) and a description of what they
    belong to. A problem and a callback of your own classes are left out, and passed to ``load``.

    Raises OSError where the file cannot be written, and TypeError that names the class of any other object of your own:
    use ``dill``, as pymoo does.
    """
    buffer = io.BytesIO()
    description, arrays = records_of(algorithm)
    np.savez(buffer, **arrays)
    with zipfile.ZipFile(buffer, "a") as file:
        file.writestr(_DESCRIPTION, json.dumps({"format": FORMAT, **description}, separators=(",", ":")))
    write_whole(path, buffer.getvalue())


def load(path: str | PathLike[str], *, problem: Any = None, callback: Any = None) -> Any:
    """Read an algorithm that ``save`` or the command line's ``--save`` has written; no code in the file runs.

    ``problem`` and ``callback`` take the place of those in the file; they are needed where the file has none as they
    are of classes of your own.

    Raises FileNotFoundError for a missing file, and ValueError naming the file where it is no such file, damaged, of
    another version of the format, or needs ``problem`` or ``callback``.
    """
    data = Path(path).read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in file.infolist()):
                raise ValueError("a member is compressed")  # a few bytes could ask for all memory
            description = json.loads(file.read(_DESCRIPTION))
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files if name != _DESCRIPTION}
        version = description["format"]
    except Exception as error:  # whatever a zip, JSON and arrays can have wrong
        raise ValueError(
            f"{path}: it is no file that pymoo_gpuaco.checkpoint.save or --save has written, or it is damaged "
            f"({type(error).__name__}: {error})"
        ) from error
    if version != FORMAT:
        raise ValueError(
            f"{path}: it has version {version!s:.20} of the format; this pymoo_gpuaco reads {FORMAT}"
        )
    given = {"problem": problem, "callback": callback}
    try:
        return objects_of(description, arrays, {name: one for name, one in given.items() if one is not None})
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
