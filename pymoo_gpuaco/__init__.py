"""Ant colonies and a memetic search for the travelling salesman problem, on GPU and CPU, as pymoo algorithms."""

from typing import TYPE_CHECKING

from pymoo_gpuaco._lazy import lazy_names
from pymoo_gpuaco._version import __version__

if TYPE_CHECKING:
    from pymoo_gpuaco.algorithms import (
        ALL_ALGORITHMS,
        GPU2PPLS,
        GPUACS,
        GPUAS,
        GPUBWAS,
        GPUEAS,
        GPUFACO,
        GPUMMAS,
        GPUMMASQAP,
        GPURAS,
        GPU2OptIHC,
        GPUMemetic,
    )
    from pymoo_gpuaco.algorithms.display import ColonyOutput, FrontOutput
    from pymoo_gpuaco.algorithms.termination import ColonyTermination, FrontTermination
    from pymoo_gpuaco.backends.errors import BackendUnavailable, DeviceFailed
    from pymoo_gpuaco.colony.parameters import LocalSearch
    from pymoo_gpuaco.islands import Islands
    from pymoo_gpuaco.problems import (
        QAP,
        TSP,
        Front,
        MultiObjectiveTSP,
        OpenPath,
        load_qap,
        load_tsp,
        read_cities,
        read_tour,
        write_route,
        write_tour,
    )
    from pymoo_gpuaco.recorder import Recorder
    from pymoo_gpuaco.solving import Solution, Summary, solve, summary
    from pymoo_gpuaco.strokes import Strokes, solve_strokes
    from pymoo_gpuaco.versions import show_versions
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "algorithms": "ALL_ALGORITHMS GPU2PPLS GPUACS GPUAS GPUBWAS GPUEAS "
            "GPUFACO GPUMMAS GPUMMASQAP GPURAS GPU2OptIHC GPUMemetic",
            "algorithms.display": "ColonyOutput FrontOutput",
            "algorithms.termination": "ColonyTermination FrontTermination",
            "backends.errors": "BackendUnavailable DeviceFailed",
            "colony.parameters": "LocalSearch",
            "islands": "Islands",
            "problems": "QAP TSP Front MultiObjectiveTSP OpenPath load_qap load_tsp read_cities "
            "read_tour write_route write_tour",
            "recorder": "Recorder",
            "solving": "Solution Summary solve summary",
            "strokes": "Strokes solve_strokes",
            "versions": "show_versions",
        },
    )

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
    "QAP",
    "TSP",
    "BackendUnavailable",
    "ColonyOutput",
    "ColonyTermination",
    "DeviceFailed",
    "Front",
    "FrontOutput",
    "FrontTermination",
    "GPU2OptIHC",
    "GPUMemetic",
    "Islands",
    "LocalSearch",
    "MultiObjectiveTSP",
    "OpenPath",
    "Recorder",
    "Solution",
    "Strokes",
    "Summary",
    "__version__",
    "load_qap",
    "load_tsp",
    "read_cities",
    "read_tour",
    "show_versions",
    "solve",
    "solve_strokes",
    "summary",
    "write_route",
    "write_tour",
]
