"""Results in notebooks: a table, and a drawing of the tour as SVG, without matplotlib."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.tsp import TSP

MOST_CITIES_DRAWN = 20_000
"""Larger drawings would take megabytes in a notebook, and their lines would merge."""
_SIDE, _MARGIN = 420.0, 8.0  # pixels


def html_table(rows: Sequence[Sequence[str]], head: Sequence[str] = (), caption: str = "") -> str:
    """Return rows of text as an HTML table; every cell is escaped."""
    parts = ["<table>"]
    if caption:
        parts.append(f"<caption>{html.escape(caption)}</caption>")
    if head:
        parts.append("<tr>" + "".join(f"<th>{html.escape(cell)}</th>" for cell in head) + "</tr>")
    parts += ["<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return "".join([*parts, "</table>"])


def svg_of(problem: Any, tour: NDArray[np.int64]) -> str:
    """Return a drawing of a tour as SVG, or "" where the problem has no positions or is too large to draw."""
    drawable = problem.positions is not None if isinstance(problem, TSP) else hasattr(problem, "cities")
    if not drawable or len(tour) > MOST_CITIES_DRAWN:
        return ""
    places = np.asarray(problem.cities, dtype=float)[:, :2]
    order = np.append(tour, tour[0]) if getattr(problem, "closed", True) else np.asarray(tour)
    low = places.min(axis=0)
    width, height = np.ptp(places, axis=0)
    scale = (_SIDE - 2 * _MARGIN) / max(width, height, np.finfo(float).tiny)
    x = _MARGIN + (places[:, 0] - low[0]) * scale
    y = _MARGIN + (height - (places[:, 1] - low[1])) * scale  # upwards
    fixed = "".join(
        f'<line x1="{x[i]:.1f}" y1="{y[i]:.1f}" x2="{x[j]:.1f}" y2="{y[j]:.1f}"/>'
        for i, j in getattr(problem, "fixed_edges", ())
    )
    arrows = "" if getattr(problem, "symmetric", True) else _arrows(np.stack([x, y], axis=1)[order])
    line = " ".join(f"{x[city]:.1f},{y[city]:.1f}" for city in order)
    dots = "".join(
        f'<circle cx="{x[city]:.1f}" cy="{y[city]:.1f}" r="1.5"/>' for city in sorted(set(order.tolist()))
    )
    size = f'width="{width * scale + 2 * _MARGIN:.0f}" height="{height * scale + 2 * _MARGIN:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
        f'<polyline points="{line}" fill="none" stroke="#1f4e79"/><g fill="#1f4e79">{arrows}</g>'
        f'<g stroke="#c0392b" stroke-width="2.5">{fixed}</g><g fill="#c0392b">{dots}</g></svg>'
    )


def svg_of_points(points: NDArray[np.float64]) -> str:
    """Return points (f, 2) as SVG, the first coordinate to the right and the second upwards, both over their range.

    Of more than `MOST_CITIES_DRAWN` points as many are drawn, evenly chosen.
    """
    step = -(-len(points) // MOST_CITIES_DRAWN)
    shown = points[::step]
    span = np.ptp(points, axis=0)
    unit = (shown - points.min(axis=0)) / np.where(span > 0.0, span, 1.0) * (_SIDE - 2 * _MARGIN) + _MARGIN
    dots = "".join(f'<circle cx="{x:.1f}" cy="{_SIDE - y:.1f}" r="1.5"/>' for x, y in unit.tolist())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_SIDE:.0f}" height="{_SIDE:.0f}">'
        f'<rect width="100%" height="100%" fill="none" stroke="#888888"/><g fill="#c0392b">{dots}</g></svg>'
    )


def _arrows(corners: NDArray[np.float64]) -> str:
    """Return a triangle in the middle of each leg, its tip where the leg leads."""
    legs = np.diff(corners, axis=0)
    ahead = 4.0 * legs / np.maximum(np.hypot(*legs.T), 1e-9)[:, None]
    aside = ahead[:, ::-1] * (0.6, -0.6)
    middle = corners[:-1] + legs / 2.0
    tips = np.stack([middle + ahead, middle - ahead + aside, middle - ahead - aside], axis=1)
    return "".join(
        f'<polygon points="{" ".join(f"{u:.1f},{v:.1f}" for u, v in tip)}"/>' for tip in tips.tolist()
    )
