"""The options that most benchmarks have, with one meaning in all of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Literal


def parser_for(
    description: str | None,
    folder: Literal["needed", "optional", "none"] = "needed",
    seeds: int | None = None,
    only: Iterable[str] = (),
    add: bool = False,
    backend: str | None = None,
) -> argparse.ArgumentParser:
    """Return a parser whose help is a script's docstring as it stands.

    folder : whether the script reads TSPLIB files of a folder; left out, it is the one at hand.
    seeds, backend : defaults of ``--seeds`` and ``--backend``; None: there is no such option.
    only : what ``--only`` chooses from, all by default.
    add : whether there is ``--add``, which keeps the other rows of the file.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if folder == "needed":
        parser.add_argument("folder", type=Path, help="of TSPLIB files")
    elif folder == "optional":
        parser.add_argument("folder", type=Path, nargs="?", default=Path("."), help="of TSPLIB files")
    if seeds is not None:
        parser.add_argument("--seeds", type=int, default=seeds, help="runs of each row")
    if choices := list(only):
        parser.add_argument("--only", nargs="+", choices=choices, default=choices)
    if add:
        parser.add_argument("--add", action="store_true", help="keep what is written of other rows")
    if backend is not None:
        parser.add_argument("--backend", choices=("cpu", "cuda"), default=backend)
    return parser
