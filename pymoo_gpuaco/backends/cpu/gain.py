"""When a move shortens a tour: the one definition of the least gain in this engine."""

from __future__ import annotations

from pymoo_gpuaco.host.compiled import inlined

# A move adds up to three lengths and removes up to three. Rounding makes at most 6 * 2**-53 of their sum; this is a
# thousand times that, and no shorter tour worth the name is lost. So every move shortens the tour, the search comes to
# no tour twice, and it makes the same moves in millimetres and in light years.
NOISE = 1e-12


@inlined
def shortens(delta, removed):  # type: ignore[no-untyped-def]
    """Whether a change of length is no rounding error, for a move that takes ``removed`` out of the tour."""
    return delta < -NOISE * removed
