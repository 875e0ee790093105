"""Files that ``solve`` writes: each is tried before the search, so that hours are not lost to a typing error."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.backend_bases import FigureCanvasBase

STDOUT = "-"
PLACE = "{instance}"


@dataclass(frozen=True)
class Output:
    """A file that was asked for.

    Attributes
    ----------
    option : the option that named it, for messages.
    pattern : the name as given, "{instance}" included; "-" is standard output where the option allows it.
    """

    option: str
    pattern: str

    def of(self, instance: str) -> Path:
        """Return the file for one instance; a NAME that a file brings along leads to no other folder."""
        return Path(self.pattern.replace(PLACE, re.sub(r"[^\w.+-]", "_", instance)))


def check(outputs: list[Output], instances: list[str], pictures: Output | None) -> None:
    """Raise ValueError for a file that could not be written: before anything is computed.

    `outputs` are those of each instance, `pictures` the one among them whose suffix must be that of a picture.
    """
    for output in outputs:
        if output.pattern == STDOUT:
            continue
        if len(instances) > 1 and PLACE not in output.pattern:
            raise ValueError(
                f"{output.option} {output.pattern}: {len(instances)} instances would be written to one file; "
                f"put {PLACE} into the name"
            )
        for instance in instances:
            _check_file(output.option, output.of(instance))
    if pictures is not None:
        known = FigureCanvasBase.get_supported_filetypes()
        suffix = Path(pictures.pattern).suffix[1:].lower()
        if suffix not in known:
            raise ValueError(
                f"{pictures.option} {pictures.pattern}: the suffix must be one of {', '.join(sorted(known))}"
            )


def check_file(option: str, name: str, suffixes: tuple[str, ...] = ()) -> None:
    """Raise ValueError for one file that could not be written, or whose suffix is none of those given."""
    if suffixes and Path(name).suffix.lower() not in suffixes:
        raise ValueError(f"{option} {name}: the suffix must be {' or '.join(suffixes)}")
    _check_file(option, Path(name))


def check_apart(read: list[tuple[str, Path | int]], written: list[tuple[str, Path]]) -> None:
    """Raise ValueError where a file is to be written that is read, or that is to be written twice.

    read : what names each file that is read, for messages, and the file, or the number of an open one.
    written : the option and the file.
    """
    inputs = {identity(file): what for what, file in read}
    taken: dict[object, str] = {}
    for option, path in written:
        one = identity(path)
        if one is None:
            continue
        if one in inputs:
            raise ValueError(
                f"{option} {path}: {inputs[one]} is read from the same file, which would be lost"
            )
        if one in taken:
            raise ValueError(f"{option} {path}: {taken[one]} is to be written to the same file")
        taken[one] = option


def identity(file: Path | int) -> object:
    """Return what only one file has under all its names; None for a pipe or a device, which loses nothing."""
    try:
        known = os.stat(file)
    except OSError:  # it is still to be made
        return None if isinstance(file, int) else file.resolve()
    return (known.st_dev, known.st_ino) if stat.S_ISREG(known.st_mode) else None


def _check_file(option: str, path: Path) -> None:
    if path.is_dir():
        raise ValueError(f"{option} {path}: it is a folder, not a file")
    folder = path.parent
    if not folder.is_dir():
        raise ValueError(f"{option} {path}: there is no folder {folder}")
    if path.exists() and not os.access(path, os.W_OK):
        raise ValueError(f"{option} {path}: the file may not be written")
    if path.exists() and not path.is_file():
        return  # a pipe or a device, which is written to as it stands
    probe = folder / f".{path.name}.{os.getpid()}.probe"
    try:  # rights alone do not tell: the disk may be full, or mounted to be read only
        probe.write_bytes(b"\n" * 4096)
    except OSError as error:
        raise ValueError(
            f"{option} {path}: the folder {folder} cannot be written to ({error.strerror})"
        ) from error
    finally:
        probe.unlink(missing_ok=True)


def table_of_runs(file: str, rows: list[dict[str, Any]]) -> bytes:
    """Return the runs as the contents of a .csv or .json file."""
    if file.lower().endswith(".json"):
        return (json.dumps(rows, indent=1) + "\n").encode()
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()
