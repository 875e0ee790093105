"""What an ant remembers of where it has been: the layouts of tabu.cuh and their sizes."""

from __future__ import annotations

from dataclasses import dataclass

from pymoo_gpuaco.backends.cuda.device.limits import DeviceLimits, round_up
from pymoo_gpuaco.backends.cuda.instance.lists import node_bytes, node_type

LIST, COMPACT, BITMASK = 0, 1, 2  # TABU in tabu.cuh
_CODES = {"list": LIST, "compact": COMPACT, "bitmask": BITMASK}


@dataclass(frozen=True)
class TabuPlan:
    """One tabu."""

    n: int
    code: int
    size: int  # bytes
    in_shared: bool  # one at least fits the shared memory of a block

    def definitions(self) -> dict[str, object]:
        """What a walk is compiled with."""
        return {"NODE": node_type(self.n), "TABU": self.code, "TABU_IN_SHARED": int(self.in_shared)}


def tabu_plan(asked: str, usual: str, n: int, limits: DeviceLimits) -> TabuPlan:
    """Plan the tabu that ``ColonyParameters.tabu`` asks for, "auto" being the walk's ``usual`` one."""
    code = _CODES[usual if asked == "auto" else asked]
    each = node_bytes(n)
    size = round_up({LIST: 2 * n * each, COMPACT: n * each, BITMASK: 4 * -(-n // 32)}[code], 16)
    return TabuPlan(n, code, size, size <= limits.shared_bytes)
