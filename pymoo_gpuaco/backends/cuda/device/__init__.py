"""A CUDA device: context, memory, compilation and launches."""

from pymoo_gpuaco.backends.cuda.device.device import (
    LONG,
    RESERVE,
    Device,
    DeviceLimits,
    Part,
    Source,
    round_keys,
    round_up,
    words,
)

__all__ = ["LONG", "RESERVE", "Device", "DeviceLimits", "Part", "Source", "round_keys", "round_up", "words"]
