"""What makes a colony, as pure numbers: parameters, trail limits and schedules; no device and no pymoo."""
