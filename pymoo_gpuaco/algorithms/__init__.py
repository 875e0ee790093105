"""The algorithms. ``ALL_ALGORITHMS`` is the one list of those for one objective that tests, docs and the command line
read; ``GPUMOACO`` is for several."""

from pymoo_gpuaco.algorithms.acs import GPUACS
from pymoo_gpuaco.algorithms.ant_system import GPUAS
from pymoo_gpuaco.algorithms.bwas import GPUBWAS
from pymoo_gpuaco.algorithms.eas import GPUEAS
from pymoo_gpuaco.algorithms.mmas import GPUMMAS
from pymoo_gpuaco.algorithms.moaco import GPUMOACO
from pymoo_gpuaco.algorithms.ras import GPURAS
from pymoo_gpuaco.algorithms.two_opt_ihc import GPU2OptIHC

ALL_ALGORITHMS = {cls.__name__: cls for cls in (GPUAS, GPUEAS, GPURAS, GPUBWAS, GPUMMAS, GPUACS, GPU2OptIHC)}

__all__ = [
    "ALL_ALGORITHMS",
    "GPUACS",
    "GPUAS",
    "GPUBWAS",
    "GPUEAS",
    "GPUMMAS",
    "GPUMOACO",
    "GPURAS",
    "GPU2OptIHC",
]
