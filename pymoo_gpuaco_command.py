"""The command ``pymoo-gpuaco``. It stands beside the package, whose import takes seconds and may be interrupted."""

from __future__ import annotations

import os
import signal
from typing import Any


def _leave(number: int, frame: Any) -> None:
    os.write(2, b"\npymoo-gpuaco: interrupted\n")
    os._exit(130)  # an exception could be caught by a module that is being imported


def leave_on_ctrl_c() -> None:
    """Let Ctrl-C end the process with one line and status 130."""
    # else it is ignored, as in a background job
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def hear_ctrl_c_again() -> None:
    """Undo ``leave_on_ctrl_c``."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> int:
    """Import the command line, which Ctrl-C may end, and run it."""
    leave_on_ctrl_c()
    from pymoo_gpuaco.cli import main as command

    hear_ctrl_c_again()
    return command()
