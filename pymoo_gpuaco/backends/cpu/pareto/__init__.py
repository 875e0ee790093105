"""Multi-objective search on all cores."""
