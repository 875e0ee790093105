"""The weights of all edges, for walks that weigh every open city."""

from __future__ import annotations

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.backends.cuda.instance.cities import Cities
from pymoo_gpuaco.backends.cuda.weights.unit import weight_definitions

SHARES, INVERSES, SCALED = 0, 1, 2  # FORM in all_weights.cu


class AllWeights:
    """``factors`` (n, stride), made from the trails as they stand, in one of three forms; 0 in places past n."""

    def __init__(
        self,
        device: Device,
        cities: Cities,
        exponents: tuple[float, float, float],
        form: int,
        stride: int | None = None,
    ) -> None:
        self._device = device
        self._cities = cities
        self._exponents = exponents
        self._form = form
        self._stride = stride or cities.n

    def sources(self) -> list[Source]:
        """Return the kernel of weights."""
        cities = self._cities
        definitions = {**cities.definitions(), **weight_definitions(cities.instance), "FORM": self._form}
        return [Source("weights/all_weights.cu", definitions, ["all_weights"])]

    def needed(self) -> dict[str, int]:
        """Return the bytes of the array."""
        return {"factors": 4 * self._cities.n * self._stride}

    def prepare(self) -> None:
        """Weights are made anew for every construction."""
        address, cities = self._device.arrays.address, self._cities.arguments()
        self._arguments = address("tau"), *cities, *self._exponents, self._stride, address("factors")

    def weigh(self) -> None:
        """Fill the array."""
        self._device.launch("all_weights", self._cities.n, 256, *self._arguments)
