"""Is one way better than another? Sign tests over pairs of runs, corrected for how many ways were tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scipy.stats import binomtest


class Pairs(NamedTuple):
    """Pairs of runs that differ in nothing but the way: how many the way won, lost and drew."""

    better: int
    worse: int
    equal: int

    @classmethod
    def of(cls, differences: Sequence[float]) -> Pairs:
        """Of differences in length, way less baseline."""
        better, worse = sum(d < 0.0 for d in differences), sum(d > 0.0 for d in differences)
        return cls(better, worse, len(differences) - better - worse)

    @property
    def p(self) -> float:
        """Probability of a result that is at least so one-sided, either way, where both are as likely; without ties."""
        n = self.better + self.worse
        return float(binomtest(self.better, n).pvalue) if n else 1.0


def holm(p: Mapping[str, float]) -> dict[str, float]:
    """Probabilities corrected for their number, step by step (S. Holm, Scandinavian Journal of Statistics 6, 1979)."""
    corrected, most = {}, 0.0
    for rank, way in enumerate(sorted(p, key=lambda way: p[way])):
        most = max(most, min(1.0, (len(p) - rank) * p[way]))
        corrected[way] = most
    return corrected


def verdicts(pairs: Mapping[str, Pairs]) -> dict[str, str]:
    """For each way what its pairs say of it, in words."""
    corrected = holm({way: own.p for way, own in pairs.items()})
    return {
        way: f"{own.better} pairs better, {own.worse} worse, {own.equal} equal; sign test p = {own.p:.2g}, "
        f"corrected {corrected[way]:.2g}"
        for way, own in pairs.items()
    }
