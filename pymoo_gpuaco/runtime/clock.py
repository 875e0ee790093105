"""The clock of the process. Deadlines pass between objects as plain numbers, so all of them read the same clock."""

from __future__ import annotations

import time


class Clock:
    """Clocks of the system, in seconds; no other module of the package reads them, so a test can step its own."""

    monotonic = staticmethod(time.monotonic)  # of deadlines and durations
    wall = staticmethod(time.time)  # of ``start_time``, which pymoo's terminations compare with time.time()
    thread_time = staticmethod(time.thread_time)  # work of the calling thread
    sleep = staticmethod(time.sleep)


CLOCK = Clock()
