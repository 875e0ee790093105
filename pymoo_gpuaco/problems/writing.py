"""Writer of TSPLIB's `.tour` files: whole or not at all."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks

__all__ = ["tour_text", "write_tour", "write_whole"]


def write_tour(
    path: str | PathLike[str], tour: ArrayLike, name: str | None = None, comment: str | None = None
) -> None:
    """Write a tour as a TSPLIB tour file, which `read_tour`, LKH and Concorde's tools read.

    `tour` is an (n,) permutation of 0..n-1; TSPLIB counts cities from 1, and so does the file. A file at `path` is
    replaced in one step, when the new one is complete. `name` becomes NAME (default: the file's own name), `comment`
    one line of COMMENT, such as the tour's length.

    Raises ValueError where `tour` is no permutation, TypeError for a result that holds one, OSError where the file
    cannot be written.
    """
    text = tour_text(tour, Path(path).name.split(".")[0] if name is None else name, comment)
    write_whole(path, text.encode("utf-8"))


def tour_text(
    tour: ArrayLike, name: str, comment: str | None = None, numbers: NDArray[Any] | None = None
) -> str:
    """Return the text of a TSPLIB tour file, see `write_tour`; `numbers` (n,) are the cities' there, None: 1 to n."""
    row = checks.tours_given("tour", tour)
    if row.ndim != 1:
        raise ValueError(f"tour must have shape (n,), got {row.shape}")
    cities = checks.permutations("tour", row[None], len(row))[0]
    lines = [f"NAME : {_one_line(name)}"]
    if comment is not None:
        lines.append(f"COMMENT : {_one_line(comment)}")
    lines += ["TYPE : TOUR", f"DIMENSION : {len(cities)}", "TOUR_SECTION"]
    lines += map(str, (cities + 1 if numbers is None else numbers[cities]).tolist())
    return "\n".join([*lines, "-1", "EOF", ""])


def write_whole(path: str | PathLike[str], data: bytes) -> None:
    """Write a file so that it is complete or as it was before, also if the disk is full or the process is killed.

    Something that is no regular file (a pipe, /dev/stdout) is written to as it stands. Raises OSError.
    """
    target = Path(path).resolve()  # a link stays one, and what it points at is replaced
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            part.chmod(target.stat().st_mode)
        os.replace(part, target)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError):  # of the name that the caller knows
            error.filename = str(path)
        raise


def _one_line(text: str) -> str:
    return " ".join(text.split())
