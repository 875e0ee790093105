"""The algorithms. ``ALL_ALGORITHMS`` is the one list that tests, docs and the command line read."""

from pymoo_gpuaco.algorithms.acs import GPUACS
from pymoo_gpuaco.algorithms.ant_system import GPUAS
from pymoo_gpuaco.algorithms.mmas import GPUMMAS
from pymoo_gpuaco.algorithms.two_opt_ihc import GPU2OptIHC

ALL_ALGORITHMS = {cls.__name__: cls for cls in (GPUAS, GPUMMAS, GPUACS, GPU2OptIHC)}

__all__ = ["ALL_ALGORITHMS", "GPUACS", "GPUAS", "GPUMMAS", "GPU2OptIHC"]
