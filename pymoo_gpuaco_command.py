"""The command ``pymoo-gpuaco``. It stands beside the package, whose import takes seconds and may be interrupted."""

from __future__ import annotations

import os
import signal
from typing import Any


def _leave(number: int, frame: Any) -> None:
    os.write(2, b"\npymoo-gpuaco: interrupted\n")
    os._exit(130)  # an exception could be caught by a module that is being imported


def main() -> int:
    """Import the command line and run it; Ctrl-C before it is there ends the process with one line and status 130."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # else it is ignored, as in a shell's background job
        signal.signal(signal.SIGINT, _leave)
    from pymoo_gpuaco.cli import main as command

    signal.signal(signal.SIGINT, before)
    return command()
