"""Parameters of the Pareto search, and their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks

SUMS = 32  # weighted sums per generation
_MOST_SUMS, _FEWEST_SUMS, _CITIES_OF_ALL_SUMS = 2000, 100, 200_000


class Stage(NamedTuple):
    """Depth of the exploration of a member of the archive."""

    exchanges: int  # maximum of a chain
    rank: int  # maximum number of members of the front that dominate the explored tour
    slack: float = 1.0  # factor on the slack to the nearby gaps of the front


#: for two objectives; with more, the archive has only members of the front
STAGES = (
    Stage(3, 0),
    Stage(4, 0),
    Stage(5, 0),
    Stage(4, 0, 4.0),
    Stage(5, 1),
    Stage(5, 2),
    Stage(5, 4),
    Stage(5, 8),
)


@dataclass(frozen=True, eq=False)
class FrontParameters:
    """Parameters of a Pareto search; k objectives of n cities.

    n_weights : weighted sums of two objectives to solve first, >= 2. None: until all supported tours are found, at most
        2000, and from 100 cities on at most 200,000 / n, but at least 100.
    size : maximum members of the archive, >= 2 k.
    directions : (d, k) weights >= 0 of the objectives, no row all 0, which are all solved. None: found by the
        dichotomic scheme (two objectives only).
    """

    n_weights: int | None = None
    size: int = 100_000
    directions: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        """Validate."""
        checks.optional_integer("n_weights", self.n_weights, 2)
        checks.integer("archive_size", self.size, 4)

    def sums_of(self, n: int) -> int:
        """Return the maximum number of weighted sums of two objectives without directions."""
        if self.n_weights is not None:
            return self.n_weights
        return min(_MOST_SUMS, max(_FEWEST_SUMS, _CITIES_OF_ALL_SUMS // n))

    def kicks_of(self, n: int) -> int:
        """Return the kicks of one tour under one weighted sum."""
        return max(50, n // 10)

    def spread_of(self, n: int) -> int:
        """Return the number of weights, spread over the front, whose tours are kicked in one generation."""
        return max(8, min(SUMS, 1000 * SUMS // n))

    def explored_of(self, n: int, k: int) -> int:
        """Return the number of members to explore in one generation; many objectives give many children."""
        return max(4, self.pairs_of(n) >> max(0, k - 3))

    def pairs_of(self, n: int) -> int:
        """Return the number of pairs of members to assemble in one generation."""
        return max(4, min(256, 25_600 // n))

    def stages_of(self, k: int, directed: bool, parallel: bool) -> tuple[Stage, ...]:
        """Return the stages, the nearest first; chains of an even number of directed exchanges leave no tour.

        A device that explores members in parallel continues with a few members to the last stage so far, see
        ``FrontSearch``. The chains of each stage must then be chains of the next one, so stages with more slack are
        left out.
        """
        stages = tuple(stage for stage in STAGES if not directed or stage.exchanges % 2)
        if parallel:
            stages = tuple(stage for stage in stages if stage.slack == 1.0)
        return stages if k == 2 else stages[:3]
