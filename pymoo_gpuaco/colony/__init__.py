"""Parameters, trail limits and schedules of ant colonies; no device and no pymoo."""
