"""The least gain of a move."""

from __future__ import annotations

from pymoo_gpuaco.runtime.compiled import inlined

# A move adds and removes up to three lengths, with a rounding error of at most 6 * 2**-53 of their sum. The limit is a
# thousand times that. So every move shortens the tour, no tour repeats, and moves do not depend on the unit of length.
NOISE = 1e-12


@inlined
def shortens(delta, removed):  # type: ignore[no-untyped-def]
    """Return whether a gain exceeds the rounding error of a move that removes edges of length ``removed``."""
    return delta < -NOISE * removed
