"""Exceptions of engines, besides ValueError, TypeError and MemoryError."""

from __future__ import annotations


class BackendUnavailable(RuntimeError):
    """The requested backend cannot run here; the message says what is missing.

    Raised for every failed set-up of a device: a missing or old driver, a failing compiler, code that does not load.
    ``backend="auto"`` then uses the CPU.
    """


class DeviceFailed(RuntimeError):
    """The device or its driver failed during a run; the message says whether it can be used again.

    The best tour so far is in ``algorithm.opt`` and ``algorithm.result()``.
    """
