"""Fronts of several objectives on a CUDA device."""
