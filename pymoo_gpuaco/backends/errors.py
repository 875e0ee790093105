"""What engines raise beside ValueError, TypeError and MemoryError."""

from __future__ import annotations


class BackendUnavailable(RuntimeError):
    """The backend that was asked for cannot run here; the message says what is missing.

    Every failure to set a device up is one: no driver or one too old, a compiler that fails, code that does not load.
    ``backend="auto"`` then goes on with the CPU.
    """


class DeviceFailed(RuntimeError):
    """The device or its driver failed in the middle of a run; the message says whether it can be used again.

    The best tour so far is in ``algorithm.opt`` and ``algorithm.result()``.
    """
