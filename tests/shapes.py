"""Cities on few coordinates, on curves and at shared places: shapes that search trees and hashes may not like."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Cities = NDArray[np.float64]  # (n, 2) or (n, 3)


def _two(n: int, first: Callable[[Cities], Cities], second: Callable[[Cities], Cities]) -> Cities:
    """Two curves of half of the cities each, by steps 0, 1, 2 and so on."""
    return np.concatenate([first(np.arange(n // 2, dtype=float)), second(np.arange(n - n // 2, dtype=float))])


def _square(n: int) -> Cities:
    """The outline of a square."""
    side = np.arange(n) * 4.0 / n
    on = side % 1.0
    x = np.select([side < 1, side < 2, side < 3], [on, 1.0, 1.0 - on], 0.0)
    return n * np.c_[x, x[(np.arange(n) - n // 4) % n]]


def _circle(n: int) -> Cities:
    angle = 2.0 * np.pi * np.arange(n) / n
    return 1000.0 * np.c_[np.cos(angle), np.sin(angle)]


def _random(n: int) -> np.random.Generator:
    return np.random.default_rng(n)


#: how many cities of each shape there are is ``n``
SHAPES: dict[str, Callable[[int], Cities]] = {
    "line": lambda n: np.c_[np.arange(n), np.zeros(n)],
    "shuffled line": lambda n: np.c_[np.zeros(n), _random(n).permutation(n)],
    "exponential line": lambda n: np.c_[np.exp(np.arange(n) * 30.0 / n), np.zeros(n)],
    "clusters on a line": lambda n: np.c_[
        1e4 * _random(n).integers(0, 10, n) + np.round(_random(n).normal(size=n), 4), np.zeros(n)
    ],
    "two lines": lambda n: np.c_[np.arange(n) % (n // 2), 3.0 * (np.arange(n) >= n // 2)],
    "two lines far apart": lambda n: np.c_[np.arange(n) % (n // 2), 1.0 * n * (np.arange(n) >= n // 2)],
    "ten lines": lambda n: np.c_[np.arange(n) // 10, n * (np.arange(n) % 10)],
    "cross": lambda n: _two(n, lambda t: np.c_[t - n // 4, 0 * t], lambda t: np.c_[0 * t, t - n // 4 + 0.5]),
    "L": lambda n: _two(n, lambda t: np.c_[t, 0 * t], lambda t: np.c_[0 * t, t + 1.0]),
    "T": lambda n: _two(n, lambda t: np.c_[t - n // 4, 0 * t], lambda t: np.c_[0 * t, -t - 1.0]),
    "X": lambda n: _two(n, lambda t: np.c_[t, t], lambda t: np.c_[t, -t - 1.0]),
    "two slanted lines": lambda n: _two(n, lambda t: np.c_[t, -t], lambda t: np.c_[t + n, n - t]),
    "diagonal": lambda n: np.c_[np.arange(n), -np.arange(n)],
    "thick diagonal": lambda n: np.c_[np.arange(n), -np.arange(n)] + 20.0 * _random(n).random((n, 2)),
    "stairs": lambda n: np.c_[np.arange(n) // 2, -(np.arange(1, n + 1) // 2)],
    "square": _square,
    "grid": lambda n: np.c_[np.arange(n) % int(n**0.5), np.arange(n) // int(n**0.5)],
    "circle": _circle,
    "circle and its centre": lambda n: np.concatenate([_circle(n - 1), np.zeros((1, 2))]),
    "few columns": lambda n: np.c_[_random(n).integers(0, 10, n), _random(n + 1).permutation(n)],
    "few rows far apart": lambda n: np.c_[_random(n).permutation(n), 1e6 * _random(n + 1).integers(0, 10, n)],
    "few places": lambda n: 1.0 * _random(n).integers(0, 7, (n, 2)),
    "one place": lambda n: np.zeros((n, 2)),
    "one place and one city": lambda n: np.concatenate([np.zeros((n - 1, 2)), np.ones((1, 2))]),
    "one place and a line": lambda n: np.maximum(np.c_[np.arange(n) - n // 2, np.zeros(n)], 0.0),
    "comb": lambda n: np.c_[
        np.where(np.arange(n) % 2, np.arange(n) // 100 * 100, np.arange(n)),
        np.where(np.arange(n) % 2, np.arange(n) % 100, 0),
    ],
    "line in space": lambda n: np.c_[np.zeros((n, 2)), np.arange(n)],
    "plane in space": lambda n: np.c_[
        np.arange(n) % int(n**0.5), np.full(n, 5.0), np.arange(n) // int(n**0.5)
    ],
    "cross in space": lambda n: np.eye(3)[np.arange(n) % 3] * (np.arange(n) // 3 + 1.0)[:, None],
    "one place in space": lambda n: np.ones((n, 3)),
}
IN_THE_PLANE = [name for name in SHAPES if not name.endswith("space")]
