"""Where the CUDA sources are: in the installed package, else at the top of the checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[2]


def folder() -> Path:
    """Return the folder of the kernels. Raises FileNotFoundError if the installation lacks it."""
    places = (_PACKAGE / "cuda_src", _PACKAGE.parent / "cuda_src")
    for place in places:
        if (place / "construct.cu").is_file():
            return place
    raise FileNotFoundError(
        f"the CUDA sources are missing: looked for construct.cu in {' and '.join(map(str, places))}; "
        "reinstall pymoo-gpuaco"
    )


def read(name: str) -> str:
    """Return one source file as text."""
    return (folder() / name).read_text(encoding="utf-8")


def everything() -> bytes:
    """All source files, in order of their names: what a compiled kernel depends on."""
    files = sorted(p for p in folder().iterdir() if p.suffix in (".cu", ".cuh"))
    return b"\0".join(p.name.encode() + b"\0" + p.read_bytes() for p in files)
