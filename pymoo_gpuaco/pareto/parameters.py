"""Numbers of a search for fronts, and what they are by default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks

_MOST_SUMS, _FEWEST_SUMS, _CITIES_OF_ALL_SUMS = 2000, 100, 200_000


class Stage(NamedTuple):
    """How far a member of the archive is looked at."""

    exchanges: int  # most of a chain
    rank: int  # only tours are that at most so many members of the front dominate
    slack: float = 1.0  # times as far as to the gaps of the front near by


#: of two objectives; of more there are only members of the front
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
    """How a front is searched for; k objectives of n cities.

    n_weights : weighted sums of two objectives that are solved at first, >= 2, or None: as many as it takes to find all
        supported tours, up to 2000, or fewer than that from 100 cities on, 200,000 / n and at least 100.
    size : members that the archive holds, >= 2 k.
    directions : (d, k) weights >= 0 of the objectives, each row not all 0, which are solved all; None: found by the
        dichotomic scheme (two objectives only).
    dives : whether the search goes along the front, and on from members by kicks and by more than the first stage;
        without, it is a plain two-phase search, which ends.
    sums : weighted sums that are solved in a generation, >= 1.
    kicks : of one tour under one weighted sum, >= 0; None: n / 10, and at least 50.
    looks : members that are looked at in a generation, >= 1; None: 4 to 256, fewer the more cities and objectives.
    """

    n_weights: int | None = None
    size: int = 100_000
    directions: NDArray[np.float64] | None = None
    dives: bool = True
    sums: int = 32
    kicks: int | None = None
    looks: int | None = None

    def __post_init__(self) -> None:
        """Check what was given."""
        checks.optional_integer("n_weights", self.n_weights, 2)
        checks.integer("archive_size", self.size, 4)

    def sums_of(self, n: int) -> int:
        """Weighted sums of two objectives that are solved at most where no directions are given."""
        if self.n_weights is not None:
            return self.n_weights
        return min(_MOST_SUMS, max(_FEWEST_SUMS, _CITIES_OF_ALL_SUMS // n))

    def kicks_of(self, n: int) -> int:
        """Kicks of one tour under one weighted sum."""
        return max(50, n // 10) if self.kicks is None else self.kicks

    def spread_of(self, n: int) -> int:
        """Tours of weights all over the front that are kicked in one generation."""
        return max(8, min(self.sums, 1000 * self.sums // n))

    def ways_of(self, n: int) -> int:
        """Sides of the hull that are gone along in one generation."""
        return max(4, min(16, 16_000 // n))

    def looks_of(self, n: int, k: int) -> int:
        """Members that are looked at in one generation; of more than three objectives each leads to thousands."""
        if self.looks is not None:
            return self.looks
        return max(4, self.pairs_of(n) >> max(0, k - 3))

    def pairs_of(self, n: int) -> int:
        """Pairs of members that edges are assembled of in one generation."""
        return max(4, min(256, 25_600 // n))

    def stages_of(self, k: int, directed: bool, side_by_side: bool) -> tuple[Stage, ...]:
        """The stages, the nearest first; chains of an even number of directed exchanges leave no tour.

        Where looks are made side by side, those of a few members go on to the last stage that has begun, see
        ``FrontSearch``: there its chains must be among the next stage's, so that none leads farther by fewer exchanges.
        """
        if not self.dives:
            return STAGES[:1]
        stages = tuple(stage for stage in STAGES if not directed or stage.exchanges % 2)
        if side_by_side:
            stages = tuple(stage for stage in stages if stage.slack == 1.0)
        return stages if k == 2 else stages[:3]
