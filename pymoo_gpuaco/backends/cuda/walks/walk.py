"""What all walks share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from pymoo_gpuaco.backends.cuda.device import Device, Part
from pymoo_gpuaco.backends.cuda.instance.cities import Cities
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.selection import ACS, CODES, RULES

#: rules of construct.cu and construct_all.cu (paper 001)
OVER_LISTS_OR_ALL = tuple(rule.name for rule in RULES.values() if rule.over_lists == rule.name != ACS)


class Walk(Part, Protocol):
    """A part that builds tours from the trails as they stand."""

    parts: list[Part]  # that it reads, to be prepared before it

    def build(self, key: int, tours: Any, ants: int) -> None:
        """Launch: tours (ants, n) on the device, at most m, random numbers from ``key``."""
        ...


@dataclass(frozen=True)
class Setting:
    """What every walk is told."""

    device: Device
    cities: Cities
    parameters: ColonyParameters
    m: int  # ants of a launch, at most

    @property
    def colony(self) -> int:
        """Ants of a generation."""
        return self.parameters.n_ants or self.m

    @property
    def n(self) -> int:
        """Cities."""
        return self.cities.n

    @property
    def exponents(self) -> tuple[float, float, float]:
        """alpha, beta, and the distance that eta = 1 / d takes for d = 0: see ``least_distance``."""
        return float(self.parameters.alpha), float(self.parameters.beta), self.cities.instance.least_distance

    @property
    def usual_exponents(self) -> bool:
        """Whether kernels may leave the powers out."""
        return self.parameters.alpha == 1.0 and self.parameters.beta == 2.0


def rule_definitions(selection: str, among: Iterable[str]) -> dict[str, int]:
    """Return the definitions by which a file knows the rule it is compiled for, and the numbers of those it knows."""
    numbers = {f"RULE_{name.upper()}": CODES[name] for name in among}
    return {"SELECTION": CODES[selection], **numbers}
