"""Candidate edges, first tours and lower bounds, computed on the host for both backends."""
