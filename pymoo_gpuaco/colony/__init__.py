"""A colony as numbers: parameters, trail limits and schedules; no device and no pymoo."""
