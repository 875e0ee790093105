"""What the ants read in one iteration: the weights of every city's row, made from the trails as they stand."""

from __future__ import annotations

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.backends.cuda.instance.cities import CITIES, Cities
from pymoo_gpuaco.backends.cuda.layout import Layout
from pymoo_gpuaco.backends.cuda.trails.trails import Trails


class Rows:
    """``factors`` (n, stride) of the cities that a row holds.

    Of dense trails also ``raised`` (n, 32), the strongest edges that are no candidates, and ``outside_bound`` (n,),
    above which none of the others lies. With a rest to draw from ``row_cities`` (n, stride), ``spares`` (n, 32),
    ``inverses`` (n,) and ``rests`` (n,); weights.cu says what they are.
    """

    def __init__(
        self,
        device: Device,
        cities: Cities,
        trails: Trails,
        plan: Layout,
        exponents: tuple[float, float, float],
    ) -> None:
        self._device = device
        self._cities = cities
        self._trails = trails
        self._plan = plan
        self._exponents = exponents

    def sources(self) -> list[Source]:
        """Return the kernel of weights."""
        plan = self._plan
        definitions = {
            **self._cities.definitions(),
            "RACE": int(plan.race),
            "REST": int(plan.rest),
            "SLOTS": plan.slots,
            "NODE": plan.node,
            "DENSE": int(plan.dense),
        }
        return [Source("weights/weights.cu", definitions, {"weigh_rows": "PPP" + CITIES + "ffffi" + 8 * "P"})]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        plan = self._plan
        needed = {"factors": 4 * plan.n * plan.stride}
        if plan.dense:
            needed["raised"] = 32 * plan.node_bytes * plan.n
            needed["outside_bound"] = 4 * plan.n
        if plan.rest:
            needed["row_cities"] = plan.node_bytes * plan.n * plan.stride
            needed["spares"] = 32 * 8 * plan.n
            needed["inverses"] = plan.inverse_bytes
            needed["rests"] = 16 * plan.n
        return needed

    @property
    def _mask_bytes(self) -> int:
        """Shared memory of a block: one bit a city."""
        return 4 * -(-self._plan.n // 32) if self._plan.dense else 0

    def prepare(self) -> None:
        """Weights are made anew for every construction."""
        self._device.allow_shared("weigh_rows", self._mask_bytes)
        address, plan = self._device.arrays.address, self._plan
        if plan.rest:  # walks copy it in units of 16 bytes, the last of which no weight fills
            self._device.arrays.zero("inverses", plan.inverse_bytes)
        inputs = ("tau", "neighbours", "eta_beta")
        outputs = ("factors", "outside_bound", "raised")
        rest = ("rest_sums", "row_cities", "spares", "inverses", "rests")
        self._before = (*map(address, inputs), *self._cities.addresses(), *self._exponents)
        self._after = (plan.k, *map(address, outputs), *map(address, rest))

    def weigh(self) -> None:
        """Fill the rows."""
        common = float(self._trails.rest[0])
        arguments = (*self._before, common, *self._after)
        self._device.launch("weigh_rows", self._plan.n, 32, *arguments, shared=self._mask_bytes)
