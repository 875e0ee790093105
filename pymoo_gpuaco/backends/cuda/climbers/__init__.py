"""Random-restart hill climbers."""

from pymoo_gpuaco.backends.cuda.climbers.engine import CudaClimbers

__all__ = ["CudaClimbers"]
