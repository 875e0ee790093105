"""Construction by a selection rule of the user: a function in Python that draws for all ants at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cpu.construct import UNFINISHED


def build_tours(
    rule: Callable[..., Any],
    weights: NDArray[np.float64],
    neighbours: NDArray[np.int32] | None,
    best_remaining: Callable[[int, NDArray[np.bool_]], int],
    key: int,
    tours: NDArray[np.int32],
    stopped: Callable[[], bool],
) -> None:
    """Build tours (m, n) from random cities.

    ``weights`` of the edges to ``neighbours`` (n, k), or to all cities. ``best_remaining(city, visited)`` is the next
    city of an ant whose candidates are all visited or of weight 0. Once ``stopped()``, tours are ``UNFINISHED``.
    """
    m, n = tours.shape
    random = np.random.Generator(np.random.Philox(key=key))
    ants, visited = np.arange(m), np.zeros((m, n), bool)
    here: NDArray[Any] = np.asarray(random.integers(0, n, m))
    for step in range(n):
        tours[:, step], visited[ants, here] = here, True
        if step == n - 1:
            return
        if stopped():
            tours[:, 0] = UNFINISHED
            return
        uniform: NDArray[np.float64] = np.asarray(random.random(m))
        candidates: NDArray[Any] = (
            np.broadcast_to(np.arange(n), (m, n)) if neighbours is None else neighbours[here]
        )
        open_weights = np.where(visited[ants[:, None], candidates], 0.0, weights[here])
        draws = open_weights.any(axis=1)
        drawn = _draw(rule, open_weights[draws], candidates[draws], uniform[draws])
        left = [best_remaining(int(here[ant]), visited[ant]) for ant in np.flatnonzero(~draws)]
        here[draws], here[~draws] = drawn, left


def _draw(
    rule: Callable[..., Any],
    weights: NDArray[np.float64],
    candidates: NDArray[Any],
    uniform: NDArray[np.float64],
) -> NDArray[Any]:
    """Return the cities (m,) at the positions that the rule returns; raise ValueError for those of visited ones."""
    places = np.asarray(rule(weights.copy(), candidates.copy(), uniform))
    if places.shape != uniform.shape or places.dtype.kind not in "iu":
        raise ValueError(
            f"selection must return {len(uniform)} integers, got shape {places.shape} of {places.dtype}"
        )
    rows, width = np.arange(len(places)), weights.shape[1]
    inside = (places >= 0) & (places < width)
    taken = inside & (weights[rows, np.where(inside, places, 0)] > 0.0)
    if not taken.all():
        ant = int((~taken).argmax())
        raise ValueError(
            f"selection must return positions in [0, {width - 1}] of a positive weight, got {places[ant]} in row {ant}"
        )
    return candidates[rows, places]
