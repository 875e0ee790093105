"""Quadratic assignment on any device: parameters, matrices, exact solutions and bounds, the colonies."""
