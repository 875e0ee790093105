"""The device itself: its context and memory, how kernels get there, and what a launch takes."""

from pymoo_gpuaco.backends.cuda.device.device import LONG, Device
from pymoo_gpuaco.backends.cuda.device.keys import round_keys, words
from pymoo_gpuaco.backends.cuda.device.limits import DeviceLimits
from pymoo_gpuaco.backends.cuda.device.parts import Part, Source

__all__ = ["LONG", "Device", "DeviceLimits", "Part", "Source", "round_keys", "words"]
