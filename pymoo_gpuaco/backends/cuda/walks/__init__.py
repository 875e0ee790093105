"""Tour construction, one kernel per method."""
