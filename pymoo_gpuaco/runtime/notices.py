"""Messages for the user that several packages share."""

from __future__ import annotations

import functools
import logging

__all__ = ["how_to_install", "warn_once"]

_log = logging.getLogger("pymoo_gpuaco")


@functools.cache
def warn_once(line: str) -> None:
    """Log a warning, unless the same line was logged before."""
    _log.warning("%s", line)


def how_to_install(extra: str = "") -> str:
    """Return the command that installs the package, with an extra ("cuda", "docs", ..) if given."""
    what = f"'.[{extra}]'" if extra else "."
    return f"pip install {what} in a checkout"
