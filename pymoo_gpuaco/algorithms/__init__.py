"""Algorithms. ``ALL_ALGORITHMS`` lists those that find tours, for tests, documentation and the command line."""

from pymoo_gpuaco.algorithms.acs import GPUACS
from pymoo_gpuaco.algorithms.ant_system import GPUAS, GPUBWAS, GPUEAS, GPURAS
from pymoo_gpuaco.algorithms.faco import GPUFACO
from pymoo_gpuaco.algorithms.memetic import GPUMemetic
from pymoo_gpuaco.algorithms.mmas import GPUMMAS
from pymoo_gpuaco.algorithms.mmas_qap import GPUMMASQAP
from pymoo_gpuaco.algorithms.ppls import GPU2PPLS
from pymoo_gpuaco.algorithms.two_opt_ihc import GPU2OptIHC

ALL_ALGORITHMS = {
    cls.__name__: cls
    for cls in (GPUAS, GPUEAS, GPURAS, GPUBWAS, GPUMMAS, GPUACS, GPUFACO, GPU2OptIHC, GPUMemetic)
}

__all__ = [
    "ALL_ALGORITHMS",
    "GPU2PPLS",
    "GPUACS",
    "GPUAS",
    "GPUBWAS",
    "GPUEAS",
    "GPUFACO",
    "GPUMMAS",
    "GPUMMASQAP",
    "GPURAS",
    "GPU2OptIHC",
    "GPUMemetic",
]
