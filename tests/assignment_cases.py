"""Quadratic assignment problems for tests."""

from __future__ import annotations

import itertools

import numpy as np

from pymoo_gpuaco import QAP

#: kinds of `matrices`
KINDS = ("symmetric", "one-sided", "asymmetric", "twins", "large", "real")


def matrices(kind, n, seed=1):
    """Return flow, distance and linear costs (n, n)."""
    rng = np.random.default_rng([seed, n])
    flow, distance = (rng.integers(0, 50, (n, n)).astype(float) for _ in range(2))
    linear = np.zeros((n, n))
    if kind in ("symmetric", "twins", "large", "real"):
        flow += flow.T
    if kind in ("symmetric", "one-sided", "twins", "large", "real"):
        distance += distance.T
    if kind == "twins":
        flow[n // 2 :], flow[:, n // 2 :] = 0, 0  # half of the items cost nothing
        np.fill_diagonal(flow, 0)
    if kind == "large":
        flow *= 1e6  # beyond 32 bits
    if kind == "asymmetric":
        linear = rng.integers(-500, 500, (n, n)).astype(float)
    if kind == "real":
        flow, distance, linear = flow / 7 - 2, distance / 3, rng.random((n, n))
    return flow, distance, linear


def best_of_all(flow, distance, linear):
    """Return the least cost of all placements."""
    rows = np.array(list(itertools.permutations(range(len(distance)), len(flow))))
    return QAP(flow, distance, linear).costs(rows).min()
