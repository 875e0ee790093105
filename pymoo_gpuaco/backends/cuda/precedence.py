"""Annealing of paths with precedence on CUDA: one warp per annealing chain."""

from __future__ import annotations

from pymoo_gpuaco.backends.cuda.device import Device, KernelGroup, Source, words
from pymoo_gpuaco.precedence.model import SHORT_STRETCH, THRESHOLDS, Chains, PathModel, Round
from pymoo_gpuaco.runtime.stop import Stop

CHAINS_PER_MULTIPROCESSOR = 8
_NAMES = (
    "path_cost", "path_cost_to", "after_begin", "after", "before_begin", "before", "nexts", "n_nexts", "previous",
    "n_previous",
)  # fmt: skip


class CudaChains(KernelGroup):
    """``PrecedenceDevice`` on one CUDA device; results equal those of the CPU for equal chains and trials.

    A chain needs 10 bytes of shared memory per node; `problems.constraints.MOST_ORDERED` cities fit into a block.
    """

    kind = "cuda"
    trials = 1 << 15

    def __init__(self, model: PathModel, n_chains: int | None, device: int) -> None:
        self.model = model
        self.device = Device(device)
        self.n_chains = n_chains or CHAINS_PER_MULTIPROCESSOR * self.device.limits.multiprocessors
        self.sources = [Source("precedence/anneal.cu", {}, ["anneal_paths"], {"anneal_paths": 10 * model.m})]
        arrays = zip(_NAMES, model.arrays, strict=True)
        self.needed = {name: array.nbytes for name, array in arrays} | {"thresholds": THRESHOLDS.nbytes}
        self.device.set_up([self], "fewer chains (population_size) need less")

    def use(self, model: PathModel) -> None:
        """Use the costs of a model of the same nodes from now on."""
        self.model = model
        with self.device.working():
            self.prepare()

    def prepare(self) -> None:
        """Upload the model."""
        for name, array in zip(_NAMES, self.model.arrays, strict=True):
            self.device.write(name, array)
        self.device.write("thresholds", THRESHOLDS)

    def anneal(self, chains: Chains, around: Round, stop: Stop) -> None:
        """Anneal the paths in place, see ``PrecedenceDevice``."""
        device, model = self.device, self.model
        device.stop = stop
        with device.working():
            device.launch(
                "anneal_paths",
                len(chains.paths),
                32,
                *(device.arrays[name] for name in _NAMES),
                model.m,
                model.nexts[0].shape[1],
                device.arrays["thresholds"],
                device.put("temperatures", around.temperatures),
                around.trials,
                SHORT_STRETCH,
                *words(around.key),
                *(device.put(f"chain_{name}", array) for name, array in chains._asdict().items()),
                device.arrays["halt"],
            )
            device.wait_or_stop()
            for name, array in chains._asdict().items():
                device.read(array, f"chain_{name}")
