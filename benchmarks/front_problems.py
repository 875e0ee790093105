"""Problems of several objectives by name: TSPLIB files and generated instances, joined by +.

`random100-1`: 100 cities, seed 1, uniform in a square. `clustered100-1`: like the clustered instances of T. Lust and
J. Teghem (2010), one uniform centre per 20 cities, and normal deviates with a standard deviation of side / sqrt(n) (as
in D. S. Johnson's generator for the DIMACS challenge). `roads100-1`, asymmetric: shortest paths between 100 uniform
points, whose streets are longer than the straight line by a random factor of up to 1.5 in each direction.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import TSP, MultiObjectiveTSP, load_tsp

_SIDE = 3163  # side of the square, whose area is 10 million
_CITIES_OF_A_CLUSTER = 20


def problem_of(folder: Path, name: str) -> MultiObjectiveTSP:
    """Return the problem of a name, whose parts are joined by +."""
    return MultiObjectiveTSP([_part(folder, part) for part in name.split("+")], names=name.split("+"))


def _part(folder: Path, name: str) -> TSP:
    made = re.fullmatch(r"(random|clustered|roads)(\d+)-(\d+)", name)
    if made is None:
        return load_tsp(folder / f"{name}.tsp")
    kind, n, seed = made[1], int(made[2]), int(made[3])
    draw = np.random.default_rng(seed)
    if kind == "roads":
        return TSP(matrix=_ways(draw, n), name=name)
    if kind == "random":
        places = draw.random((n, 2)) * _SIDE
    else:
        centres = draw.random((-(-n // _CITIES_OF_A_CLUSTER), 2)) * _SIDE
        places = centres[draw.integers(0, len(centres), n)] + draw.normal(0.0, _SIDE / np.sqrt(n), (n, 2))
    return TSP(np.round(places), "EUC_2D", name=name)


def _ways(draw: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Return the lengths (n, n) of shortest paths, rounded, row = from (Floyd 1962)."""
    places = draw.random((n, 2)) * _SIDE
    ways = np.hypot(*(places[:, None] - places).T) * draw.uniform(1.0, 1.5, (n, n))
    for over in range(n):
        ways = np.minimum(ways, ways[:, over, None] + ways[over])
    return np.round(ways)
