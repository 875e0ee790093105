"""Fronts of several objectives on all cores."""
