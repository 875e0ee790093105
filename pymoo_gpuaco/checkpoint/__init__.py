"""A run in a file, which is whole or not there, whose damage is noticed, and which runs no code when it is read."""

from __future__ import annotations

import warnings
from os import PathLike
from pathlib import Path
from typing import Any

from pymoo_gpuaco.checkpoint.container import packed, unpacked
from pymoo_gpuaco.checkpoint.reading import NeedsPickle, tree_read
from pymoo_gpuaco.checkpoint.writing import tree_of
from pymoo_gpuaco.problems.writing import write_whole

__all__ = ["load", "save"]


def save(algorithm: Any, path: str | PathLike[str]) -> None:
    """Write an algorithm to a file, so that ``load`` gives one that goes on as if it had never stopped.

    The file at ``path`` is replaced at once when the new one is complete and on the disk: a process that is killed
    meanwhile leaves the old one. It is a zip of plain arrays (``np.load`` shows them) and a description of what they
    belong to. Objects of other classes than this package's, pymoo's terminations, outputs and samplings and Python's
    own are kept as a pickle beside them: a UserWarning names them, and ``load`` then needs ``allow_pickle=True``.

    Raises OSError where the file cannot be written, and what pickle raises for an object that it cannot keep.
    """
    tree = tree_of(algorithm)
    write_whole(path, packed(tree))
    if tree.pickled:
        warnings.warn(
            f"{path} holds objects of {', '.join(tree.pickled)} as a pickle: load it with allow_pickle=True",
            stacklevel=2,
        )


def load(path: str | PathLike[str], allow_pickle: bool = False) -> Any:
    """Read an algorithm that ``save`` or the command line's ``--save`` has written.

    Without ``allow_pickle`` no code that is in the file runs, whoever has sent it; a file with objects of classes of
    your own is refused, and they are named. With it, such a file can run any code: read only what you trust.

    Raises FileNotFoundError for a missing file, and ValueError naming the file where it is no such file, damaged,
    written by an earlier or a later version of the format, or needs ``allow_pickle=True``.
    """
    data = Path(path).read_bytes()
    try:
        return tree_read(unpacked(data), allow_pickle)
    except NeedsPickle as need:
        raise ValueError(
            f"{path}: it holds objects of {need} as a pickle, which can run any code: "
            "if you trust the file, read it with allow_pickle=True"
        ) from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
