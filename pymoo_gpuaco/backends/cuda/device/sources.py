"""Access to the CUDA sources, in the installed package or at the top of the checkout."""

from __future__ import annotations

import re
from pathlib import Path

_INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)
_KNOWN = "walks/construct.cu"  # a file by which the folder is recognised
_PACKAGE = Path(__file__).resolve().parents[3]


def folder() -> Path:
    """Return the folder of the kernels. Raises FileNotFoundError if the installation lacks it."""
    places = (_PACKAGE / "cuda_src", _PACKAGE.parent / "cuda_src")
    for place in places:
        if (place / _KNOWN).is_file():
            return place
    raise FileNotFoundError(
        f"the CUDA sources are missing: looked for {_KNOWN} in {' and '.join(map(str, places))}; "
        "reinstall pymoo-gpuaco"
    )


def read(name: str) -> str:
    """Return one source file as text."""
    return (folder() / name).read_text(encoding="utf-8")


def with_includes(name: str) -> bytes:
    """Return the text of a file and of its direct and indirect includes."""
    wanted, texts = [name], {}
    while wanted:
        file = wanted.pop()
        if file not in texts:
            texts[file] = read(file)
            wanted += _INCLUDE.findall(texts[file])
    return b"\0".join(f"{file}\0{texts[file]}".encode() for file in sorted(texts))
