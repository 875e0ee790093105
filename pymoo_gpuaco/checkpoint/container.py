"""The bytes of a file: a zip that is sealed by a checksum of all that comes before it.

The members are ``run.json``, which describes the objects, ``array_1.npy`` and so on, and where there are objects of the
user's own ``objects.pickle``. Nothing is compressed, so a small file cannot become a large one.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import zipfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

VERSION = 2

_TREE, _PICKLE = "run.json", "objects.pickle"
_SEAL = re.compile(rb"pymoo_gpuaco run (\d{1,9}) sha256 ([0-9a-f]{64})")
_LONGEST_SEAL = 120
_EARLIER = b"pymoo_gpuaco run 1\n"  # how the files of 0.1's checkpoint.save begin
_PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")  # how those of its command line do
_NO_FILE = "it is no file that pymoo_gpuaco.checkpoint.save or --save has written, or it is damaged"


@dataclass
class Tree:
    """Objects as plain data.

    Attributes
    ----------
    root : the value that was saved: None, a bool, number or string, or [i], which is the object i of `records`.
    records : one a object, a list that begins with its kind; see ``writing``.
    arrays : arrays of numbers by name.
    pickled : classes of the objects in `pickle`.
    pickle : pickled one after the other, b"" where there are none.
    """

    root: Any = None
    records: list[list[Any]] = field(default_factory=list)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    pickled: list[str] = field(default_factory=list)
    pickle: bytes = b""


def packed(tree: Tree) -> bytes:
    """Return the contents of a file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        told = {"root": tree.root, "objects": tree.records}
        _add(archive, _TREE, json.dumps(told, separators=(",", ":")).encode())
        for name, array in tree.arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            _add(archive, f"{name}.npy", member.getvalue())
        if tree.pickle:
            _add(archive, _PICKLE, tree.pickle)
        archive.comment = _seal(b"")  # its length is part of what is sealed
    body = buffer.getvalue()[: -len(_seal(b""))]
    return body + _seal(body)


def unpacked(data: bytes) -> Tree:
    """Return what ``packed`` was given. Raises ValueError for anything else."""
    if data.startswith((_EARLIER, *_PICKLES)):
        raise ValueError(
            "it is a run as pymoo_gpuaco 0.1 wrote them, which later versions do not read: "
            "finish it with that version, or start from its tour"
        )
    seal = _SEAL.search(data[-_LONGEST_SEAL:])
    if seal is None or not data.endswith(seal[0]):
        raise ValueError(_NO_FILE)
    if int(seal[1]) != VERSION:
        raise ValueError(
            f"it has version {int(seal[1])} of the format, and this pymoo_gpuaco reads {VERSION}"
        )
    if seal[0] != _seal(data[: -len(seal[0])]):
        raise ValueError("it is damaged: its checksum is not that of its contents")
    try:
        return _members(data)
    except Exception as error:  # sealed, but by somebody else: whatever a zip, JSON and arrays can have wrong
        raise ValueError(f"{_NO_FILE} ({type(error).__name__}: {error})") from error


def _members(data: bytes) -> Tree:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            if entry.compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{entry.filename} is compressed")
        told = json.loads(archive.read(_TREE))
        tree = Tree(told["root"], told["objects"])
        for name in archive.namelist():
            if name.endswith(".npy"):
                member = io.BytesIO(archive.read(name))
                tree.arrays[name[:-4]] = np.lib.format.read_array(member, allow_pickle=False)
            elif name == _PICKLE:
                tree.pickle = archive.read(name)
    return tree


def _seal(body: bytes) -> bytes:
    return f"pymoo_gpuaco run {VERSION} sha256 {hashlib.sha256(body).hexdigest()}".encode()


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name), data)  # without a date
