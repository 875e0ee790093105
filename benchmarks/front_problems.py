"""Problems of several objectives by name: files of TSPLIB, and cities that are made, joined by +.

`random100-1` is 100 cities of seed 1, uniform in a square; `clustered100-1` lie around centres there, like the
clustered ones of T. Lust and J. Teghem (2010), whose files are not needed: one centre for 20 cities, uniform, and
normal deviates from it of the side over the root of n (as D. S. Johnson's generator for the DIMACS challenge has them).
`roads100-1` is asymmetric: shortest ways in a network of 100 places, uniform too, whose streets are up to half as long
again as the crow flies, each way for itself.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import TSP, MultiObjectiveTSP, load_tsp

_SIDE = 3163  # of the square, as that of instances of 1,000 cities in 10 million units
_CITIES_OF_A_CLUSTER = 20


def problem_of(folder: Path, name: str) -> MultiObjectiveTSP:
    """The problem of parts that are joined by +."""
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
    """Lengths (n, n) of shortest ways, rounded, row = from (Floyd 1962)."""
    places = draw.random((n, 2)) * _SIDE
    ways = np.hypot(*(places[:, None] - places).T) * draw.uniform(1.0, 1.5, (n, n))
    for over in range(n):
        ways = np.minimum(ways, ways[:, over, None] + ways[over])
    return np.round(ways)
