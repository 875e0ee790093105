"""The decorators of ``pymoo_gpuaco.compiled`` under the name that this engine's files use."""

from pymoo_gpuaco.compiled import allocating, compiled, inlined

__all__ = ["allocating", "compiled", "inlined"]
