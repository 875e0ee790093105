"""Weights of edges, computed from trails and distances."""
