"""Many improvements of one tour applied at once, and tours merged by their differences; no device and no pymoo."""

from pymoo_gpuaco.exchange.assembly import assemble
from pymoo_gpuaco.exchange.commit import Exchanges, lay_out, select
from pymoo_gpuaco.exchange.eax import Evolved, evolve
from pymoo_gpuaco.exchange.merge import merge, merge_all
from pymoo_gpuaco.exchange.population import EvolvingTours

__all__ = [
    "Evolved",
    "EvolvingTours",
    "Exchanges",
    "assemble",
    "evolve",
    "lay_out",
    "merge",
    "merge_all",
    "select",
]
