"""What the ants read in one iteration: the weights of every city's row, made from the trails as they stand."""

from __future__ import annotations

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.backends.cuda.device.limits import round_up
from pymoo_gpuaco.backends.cuda.instance.cities import Cities
from pymoo_gpuaco.backends.cuda.instance.lists import ListPlan, node_bytes
from pymoo_gpuaco.backends.cuda.trails.trails import Trails
from pymoo_gpuaco.backends.cuda.weights.unit import eta_unit, weight_definitions
from pymoo_gpuaco.colony.heuristic import eta_power, relative_eta_power

_REST_BYTES, _SPARE_BYTES = 16, 8  # Rest and Spare of rest_row.cuh


def inverse_bytes(n: int) -> int:
    """Bytes of one float a city, in whole units of 16."""
    return round_up(4 * n, 16)


class Rows:
    """``factors`` (n, stride) of the cities that a row holds: weights, or with ``race`` their inverse.

    Of dense trails also ``raised`` (n, 32), the strongest edges that are no candidates, and ``outside_bound`` (n,),
    above which none of the others lies. With ``all_cities`` to draw from ``row_cities`` (n, stride),
    ``spares`` (n, 32), ``inverses`` (n,) and ``rests`` (n,); weights.cu says what they are.
    """

    def __init__(
        self,
        device: Device,
        cities: Cities,
        trails: Trails,
        exponents: tuple[float, float, float],
        race: bool,
        all_cities: bool = False,
    ) -> None:
        self._device = device
        self._cities = cities
        self._trails = trails
        self._exponents = exponents
        self._race = race
        self._all_cities = all_cities
        self._lists = ListPlan(cities.n, cities.instance.k)

    def sources(self) -> list[Source]:
        """Return the kernel of weights."""
        definitions = {
            **self._cities.definitions(),
            **self._lists.definitions(),
            **weight_definitions(self._cities.instance),
            "RACE": int(self._race),
            "REST": int(self._all_cities),
            "DENSE": int(self._trails.dense),
            "REST_BYTES": _REST_BYTES,
            "SPARE_BYTES": _SPARE_BYTES,
        }
        return [Source("weights/weights.cu", definitions, ["weigh_rows"])]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        n, places = self._cities.n, self._cities.n * self._lists.stride
        needed = {"factors": 4 * places, "eta_beta": 8 * n * self._lists.k}
        if self._trails.dense:
            needed["raised"] = 32 * node_bytes(n) * n
            needed["outside_bound"] = 4 * n
        if self._all_cities:
            needed["row_cities"] = node_bytes(n) * places
            needed["spares"] = 32 * _SPARE_BYTES * n
            needed["inverses"] = inverse_bytes(n)
            needed["rests"] = _REST_BYTES * n
        return needed

    @property
    def _mask_bytes(self) -> int:
        """Shared memory of a block: one bit a city."""
        return 4 * -(-self._cities.n // 32) if self._trails.dense else 0

    def prepare(self) -> None:
        """Compute eta^beta of the candidates (n, k); weights are made anew for every construction."""
        device, distances = self._device, self._cities.instance.neighbour_distances
        _, beta, shortest = self._exponents
        if self._all_cities:  # beside weights that kernels work out, see weight.cuh
            eta_beta = eta_power(distances, eta_unit(self._cities.instance), shortest, beta)
        else:
            eta_beta = relative_eta_power(distances, shortest, beta)
        device.write("eta_beta", eta_beta)
        device.allow_shared("weigh_rows", self._mask_bytes)
        if self._all_cities:  # walks copy it in units of 16 bytes, the last of which no weight fills
            device.arrays.zero("inverses", inverse_bytes(self._cities.n))
        address, optional = device.arrays.address, device.arrays.optional
        inputs = ("tau", "neighbours", "eta_beta")
        outputs = ("outside_bound", "raised", "rest_sums", "row_cities", "spares", "inverses", "rests")
        self._before = (*map(address, inputs), *self._cities.arguments(), *self._exponents)
        self._after = (self._lists.k, address("factors"), *map(optional, outputs))

    def weigh(self) -> None:
        """Fill the rows."""
        common = float(self._trails.default_trail[0])
        arguments = (*self._before, common, *self._after)
        self._device.launch("weigh_rows", self._cities.n, 32, *arguments, shared=self._mask_bytes)
