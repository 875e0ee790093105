"""Islands: several copies of an algorithm that search one problem side by side on Dask and exchange tours."""

from pymoo_gpuaco.islands.algorithm import FrontIslands, Islands, IslandsOutput

__all__ = ["FrontIslands", "Islands", "IslandsOutput"]
