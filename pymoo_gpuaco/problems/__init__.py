"""Problems: the TSP, TSPLIB's metrics and files, and instances by name."""

from typing import TYPE_CHECKING

from pymoo_gpuaco._lazy import lazy_names

if TYPE_CHECKING:
    from pymoo_gpuaco.problems.datasets import available_instances, load_tsp, random_map
    from pymoo_gpuaco.problems.instance import Instance
    from pymoo_gpuaco.problems.metrics import METRIC_NAMES, Metric, distances, prepare_coordinates
    from pymoo_gpuaco.problems.multi_objective import Front, MultiObjectiveTSP, as_multi_objective
    from pymoo_gpuaco.problems.pymoo_problems import as_instance
    from pymoo_gpuaco.problems.qap import QAP, Assignment
    from pymoo_gpuaco.problems.qaplib import load_qap, read_placement
    from pymoo_gpuaco.problems.reading import read_cities
    from pymoo_gpuaco.problems.tsp import TSP, OpenPath
    from pymoo_gpuaco.problems.tsplib import read_tour
    from pymoo_gpuaco.problems.writing import write_route, write_tour
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "datasets": "available_instances load_tsp random_map",
            "instance": "Instance",
            "metrics": "METRIC_NAMES Metric distances prepare_coordinates",
            "multi_objective": "Front MultiObjectiveTSP as_multi_objective",
            "pymoo_problems": "as_instance",
            "qap": "QAP Assignment",
            "qaplib": "load_qap read_placement",
            "reading": "read_cities",
            "tsp": "TSP OpenPath",
            "tsplib": "read_tour",
            "writing": "write_route write_tour",
        },
    )

__all__ = [
    "METRIC_NAMES",
    "QAP",
    "TSP",
    "Assignment",
    "Front",
    "Instance",
    "Metric",
    "MultiObjectiveTSP",
    "OpenPath",
    "as_instance",
    "as_multi_objective",
    "available_instances",
    "distances",
    "load_qap",
    "load_tsp",
    "prepare_coordinates",
    "random_map",
    "read_cities",
    "read_placement",
    "read_tour",
    "write_route",
    "write_tour",
]
