"""Pareto search on any device: costs, weights, the archive, and the order in which its members are explored."""
