"""Islands: several copies of an algorithm that search one problem in parallel on Dask and exchange tours."""

from pymoo_gpuaco.islands.algorithm import FrontIslands, Islands

__all__ = ["FrontIslands", "Islands"]
