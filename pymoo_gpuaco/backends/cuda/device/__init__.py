"""The device: context, memory, compilation and launches."""

from pymoo_gpuaco.backends.cuda.device.device import LONG, Device
from pymoo_gpuaco.backends.cuda.device.parts import DeviceLimits, Part, Source, round_keys, words

__all__ = ["LONG", "Device", "DeviceLimits", "Part", "Source", "round_keys", "words"]
