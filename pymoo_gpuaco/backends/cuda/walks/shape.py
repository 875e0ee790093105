"""Launch shapes of walks with a warp an ant. They depend on the number of ants, and no compiled code does."""

from __future__ import annotations

from dataclasses import dataclass

from pymoo_gpuaco.backends.cuda.device.limits import DeviceLimits

# Ants of a block whose rows are not in shared memory, as the kernels' launch bounds have it.
MOST_TOGETHER = 4
MOST_RESIDENT = 32  # ants of a block that keeps the rows there
FEW_A_MULTIPROCESSOR = 32
BLOCKS_A_MULTIPROCESSOR = 32  # where tabus lie in global memory: more would take memory for nothing


@dataclass(frozen=True)
class Shape:
    """Blocks of a launch, and the ants of each at a time; ants are dealt out in turn."""

    blocks: int
    ants_a_block: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.ants_a_block

    def blocks_of(self, ants: int) -> int:
        """Blocks that have work when there are no more ants than these."""
        return min(self.blocks, -(-ants // self.ants_a_block))


def ants_a_multiprocessor(m: int, limits: DeviceLimits) -> int:
    """Ants of one multiprocessor, if m are spread evenly."""
    return -(-m // limits.multiprocessors)


def free_shape(m: int, ant_bytes: int, limits: DeviceLimits) -> Shape:
    """Ants whose memory of ``ant_bytes`` is all that a block needs: a block each, or four where there are many."""
    few = ants_a_multiprocessor(m, limits) <= FEW_A_MULTIPROCESSOR
    together = 1 if few or MOST_TOGETHER * ant_bytes > limits.shared_bytes else MOST_TOGETHER
    blocks = -(-m // together)
    if ant_bytes > limits.shared_bytes:
        blocks = min(blocks, BLOCKS_A_MULTIPROCESSOR * limits.multiprocessors)
    return Shape(blocks, together)


def resident_shape(m: int, limits: DeviceLimits) -> Shape:
    """One block a multiprocessor, which copies the rows once for all its ants."""
    together = min(MOST_RESIDENT, ants_a_multiprocessor(m, limits))
    return Shape(min(-(-m // together), limits.multiprocessors), together)
