"""The least gain of a move, defined once for this engine."""

from __future__ import annotations

from pymoo_gpuaco.runtime.compiled import inlined

# A move adds up to three lengths and removes up to three, with a rounding error of at most 6 * 2**-53 of their sum. The
# limit is a thousand times that. So every move really shortens the tour, no tour comes twice, and the search makes the
# same moves in any unit of length.
NOISE = 1e-12


@inlined
def shortens(delta, removed):  # type: ignore[no-untyped-def]
    """Whether a change of length is more than rounding error, for a move that removes edges of length ``removed``."""
    return delta < -NOISE * removed
