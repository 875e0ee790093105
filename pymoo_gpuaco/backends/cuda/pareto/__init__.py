"""Multi-objective search on a CUDA device."""
