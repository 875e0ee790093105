"""The weights of all edges, for walks that read whole rows."""

from __future__ import annotations

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.backends.cuda.instance.cities import CITIES, Cities
from pymoo_gpuaco.backends.cuda.layout import Layout


class AllWeights:
    """``factors`` (n, n), made from the trails as they stand: weights for a roulette, their inverse for a race."""

    def __init__(
        self,
        device: Device,
        cities: Cities,
        plan: Layout,
        exponents: tuple[float, float, float],
        inverse: bool,
    ) -> None:
        self._device = device
        self._cities = cities
        self._plan = plan
        self._exponents = exponents
        self._inverse = inverse

    def sources(self) -> list[Source]:
        """Return the kernel of weights."""
        definitions = {**self._cities.definitions(), "RACE": int(self._inverse)}
        return [Source("weights/all_weights.cu", definitions, {"all_weights": "P" + CITIES + "fffP"})]

    def needed(self) -> dict[str, int]:
        """Return the bytes of the array."""
        return {"factors": 4 * self._plan.n * self._plan.n}

    def prepare(self) -> None:
        """Weights are made anew for every construction."""
        address = self._device.arrays.address
        self._arguments = address("tau"), *self._cities.addresses(), *self._exponents, address("factors")

    def weigh(self) -> None:
        """Fill the array."""
        self._device.launch("all_weights", self._plan.n, 256, *self._arguments)
