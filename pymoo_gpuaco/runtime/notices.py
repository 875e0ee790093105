"""Words for the user that several parts of the package say."""

from __future__ import annotations

import logging

__all__ = ["how_to_install", "warn_once"]

_log = logging.getLogger("pymoo_gpuaco")
_said: dict[str, object] = {}


def warn_once(line: str) -> None:
    """Log a warning, unless the same words were logged before."""
    mine = object()
    if _said.setdefault(line, mine) is mine:  # one step: of several threads one says it
        _log.warning("%s", line)


def how_to_install(extra: str = "") -> str:
    """Return the command that installs the package, or one of its extras ("cuda", "docs" ..), for a message."""
    what = f"'.[{extra}]'" if extra else "."
    return f"pip install {what} in a checkout"
