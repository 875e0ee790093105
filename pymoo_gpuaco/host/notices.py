"""Lines of the package's logger that are worth saying once a process, however many runs and threads would say them."""

from __future__ import annotations

import logging

__all__ = ["warn_once"]

_log = logging.getLogger("pymoo_gpuaco")
_said: dict[str, object] = {}


def warn_once(line: str) -> None:
    """Log a warning, unless the same words were logged before."""
    mine = object()
    if _said.setdefault(line, mine) is mine:  # one step: of several threads one says it
        _log.warning("%s", line)
