"""Several colonies that search one problem side by side and exchange their best tours, as tasks of Dask."""

from pymoo_gpuaco.islands.algorithm import Islands
from pymoo_gpuaco.islands.front_algorithm import FrontIslands
from pymoo_gpuaco.islands.output import FrontIslandsOutput, IslandsOutput

__all__ = ["FrontIslands", "FrontIslandsOutput", "Islands", "IslandsOutput"]
