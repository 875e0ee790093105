"""Draw the pictures of benchmarks/results/*.json: ``python docs/generate_figures.py``.

benchmarks/results/gpu_gap_over_time.json becomes docs/images/gpu_gap_over_time.svg, where generate_tables.py finds it,
and so does every other result named in ``PICTURES``; gaps_in_short.svg has two of its panels. Without its result a
picture is not drawn.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Container
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

sys.path.insert(0, str(Path(__file__).resolve().parent))  # where a test loads this file
from generate_tables import renamed

ROOT = Path(__file__).resolve().parents[1]
Curve = tuple[list[float], list[float]]  # seconds, gaps in percent
# A logarithmic axis has no 0: gaps below this one, in percent, are drawn at it.
_LEAST = 0.0005
# The instances of the short picture: large ones that fast-tsp also solves.
_HEADLINE = ("rl11849", "d18512")


def source_of(result: dict[str, Any]) -> str:
    """Say which result a picture is of; it stands in the file."""
    digest = hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()[:16]
    return f"Measured {result['date']} at commit {result['commit']}; result {digest}"


def curves(result: dict[str, Any]) -> dict[str, dict[str, Curve]]:
    """Return seconds and gaps by instance and solver; times that were not measured are left out."""
    seconds = [float(column.removesuffix(" s")) for column in result["columns"][3:]]
    by_instance: dict[str, dict[str, Curve]] = {}
    for instance, solver, _, *gaps in result["rows"]:
        points = [(s, gap) for s, gap in zip(seconds, gaps, strict=True) if gap is not None]
        by_instance.setdefault(instance, {})[solver] = ([s for s, _ in points], [gap for _, gap in points])
    return by_instance


def draw_gap_over_time(result: dict[str, Any], path: Path, only: Container[str] = ()) -> None:
    """Draw one panel an instance with two points or more, or ``only`` some; one curve a solver."""
    by_instance = {
        instance: panel
        for instance, panel in curves(renamed(path.stem, result)).items()
        if (instance in only if only else any(len(seconds) > 1 for seconds, _ in panel.values()))
    }
    solvers = list(dict.fromkeys(solver for panel in by_instance.values() for solver in panel))
    measured = sorted({s for panel in by_instance.values() for seconds, _ in panel.values() for s in seconds})
    with matplotlib.rc_context({"svg.hashsalt": "pymoo_gpuaco", "svg.fonttype": "none"}):
        across = min(2, len(by_instance))  # on a telephone three would be too small to read
        down = -(-len(by_instance) // across)
        figure = Figure(figsize=(2.9 * across, 2.3 * down + 0.6), layout="constrained")
        panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
        for unused in panels[len(by_instance) :]:
            unused.set_axis_off()
        for axes, (instance, by_solver) in zip(panels, by_instance.items(), strict=False):
            for solver, (seconds, gaps) in by_solver.items():
                colour = f"C{solvers.index(solver)}"
                # the first solver on top: where several reach the best known length it is the one to see
                axes.plot(
                    seconds,
                    [max(gap, _LEAST) for gap in gaps],
                    "o-",
                    color=colour,
                    label=solver,
                    zorder=3 - 0.1 * solvers.index(solver),
                )
            axes.set(title=instance, xlabel="seconds", xscale="log", yscale="log")
            axes.set_xticks(measured)
            axes.tick_params(labelbottom=True)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter("{x:,.10g}")
            axes.grid(visible=True, which="major", alpha=0.3)
            axes.minorticks_off()
        for axes in panels[::across]:
            axes.set_ylabel(f"gap, % (at least {_LEAST:g})")
        handles = {line.get_label(): line for axes in panels for line in axes.get_lines()}
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles))
        figure.savefig(path, metadata={"Date": None, "Description": source_of(result)})


def draw_gaps_in_short(result: dict[str, Any], path: Path) -> None:
    """Draw the two panels of the start page."""
    draw_gap_over_time(result, path, _HEADLINE)


def draw_trials(result: dict[str, Any], path: Path) -> None:
    """Fig. 8, Uchida et al. 2012: the share of steps by their number of stochastic trials, and its sum."""
    trials, exactly, no_more = zip(*result["rows"], strict=True)
    few = sum(count <= 32 for count in trials)
    with matplotlib.rc_context({"svg.hashsalt": "pymoo_gpuaco", "svg.fonttype": "none"}):
        figure = Figure(figsize=(7.0, 3.2), layout="constrained")
        axes = figure.subplots()
        axes.bar(trials[:few], exactly[:few], label="exactly this number")
        axes.plot(trials, no_more, "o-", color="C1", markersize=3, label="at most this number")
        axes.set(xlabel="trials", ylabel="steps, %", xscale="log", ylim=(0.0, 100.0))
        axes.set_xticks((1, 2, 4, 8, 16, 32, 128, 512, 2048))
        axes.minorticks_off()
        axes.xaxis.set_major_formatter("{x:,.10g}")
        axes.grid(visible=True, axis="y", alpha=0.3)
        axes.legend(loc="center right")
        figure.savefig(path, metadata={"Date": None, "Description": source_of(result)})


def _mark_decades(axes: Axes) -> None:
    """Put a number at 1, 2 and 5 of every decade of a logarithmic axis that has less than three decades."""
    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        if axis.get_scale() == "log" and high / low < 1000:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_minor_locator(LogLocator(subs=()))


def _draw_one_panel(
    result: dict[str, Any],
    path: Path,
    lines: dict[str, Curve],
    scattered: Container[str] = (),
    **axes_settings: Any,
) -> None:
    """Draw curves by name over logarithmic axes; points of ``scattered`` are not connected."""
    with matplotlib.rc_context({"svg.hashsalt": "pymoo_gpuaco", "svg.fonttype": "none"}):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.subplots()
        for name, (x, y) in lines.items():
            axes.plot(x, y, "D" if name in scattered else "o-", label=name, markersize=4)
        axes.set(**{"xscale": "log", **axes_settings})
        _mark_decades(axes)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:,.10g}")
        axes.grid(visible=True, which="major", alpha=0.3)
        axes.legend()
        figure.savefig(path, metadata={"Date": None, "Description": source_of(result)})


def columns_over(result: dict[str, Any], x: int, chosen: dict[str, int]) -> dict[str, Curve]:
    """Return columns of a result by name, over column ``x``; cells without a number are left out."""
    lines = {}
    for name, column in chosen.items():
        points = [(row[x], row[column]) for row in result["rows"] if row[column] is not None]
        lines[name] = ([float(a) for a, _ in points], [float(b) for _, b in points])
    return lines


def draw_growth(result: dict[str, Any], path: Path) -> None:
    """Draw the time to a good tour over the number of cities, beside a line in proportion to that number."""
    reached, set_up = result["columns"][4], "set-up"
    lines = columns_over(result, 1, {reached: 4, set_up: 3})
    cities, seconds = lines[reached]
    if cities:
        lines["in proportion to n"] = (cities, [seconds[-1] * n / cities[-1] for n in cities])
    _draw_one_panel(result, path, lines, yscale="log", xlabel="cities", ylabel="seconds")


def draw_climbers(result: dict[str, Any], path: Path) -> None:
    """Draw moves evaluated a second over the number of cities, as Figures 2 to 4 and 6 of O'Neil and Burtscher 2015."""
    chosen = {"tuned": 3, "tiled": 2, "intra": 1, "authors' code": 5, "CPU engine": 7}
    _draw_one_panel(
        result,
        path,
        columns_over(result, 0, chosen),
        scattered=["authors' code"],
        yscale="log",
        xlabel="cities",
        ylabel="billions of moves a second",
    )


def draw_climbers_quality(result: dict[str, Any], path: Path) -> None:
    """Draw the error of the best climb over the number of cities, as Figure 7 of O'Neil and Burtscher 2015."""
    lines = columns_over(result, 1, {"best of all climbs": 4})
    _draw_one_panel(result, path, lines, xlabel="cities", ylabel="error of the best climb, %")


def draw_climbers_moves(result: dict[str, Any], path: Path) -> None:
    """Draw climbs a second by instance, as Figure 8 of O'Neil and Burtscher 2015."""
    instances = list(dict.fromkeys(row[0] for row in result["rows"]))
    with matplotlib.rc_context({"svg.hashsalt": "pymoo_gpuaco", "svg.fonttype": "none"}):
        figure = Figure(figsize=(6.4, 3.2), layout="constrained")
        axes = figure.subplots()
        axes.bar(range(len(instances)), [row[2] or 0.0 for row in result["rows"]], 0.6)
        axes.set(yscale="log", ylabel="climbs a second", xticks=range(len(instances)), xticklabels=instances)
        axes.yaxis.set_major_formatter("{x:,.10g}")
        figure.savefig(path, metadata={"Date": None, "Description": source_of(result)})


def draw_several_gpus(result: dict[str, Any], path: Path) -> None:
    """Draw the time to an equal gap over the number of GPUs, with one GPU as 1; a curve an instance."""
    names = ("instance", "GPUs", "seconds to an equal gap")
    instance, gpus, seconds = (result["columns"].index(name) for name in names)
    lines: dict[str, Curve] = {}
    for row in result["rows"]:
        if row[seconds] is not None:
            x, y = lines.setdefault(row[instance], ([], []))
            x.append(row[gpus])
            y.append(row[seconds])
    shares = {name: (x, [one / y[0] for one in y]) for name, (x, y) in lines.items()}
    numbers = sorted({row[gpus] for row in result["rows"]})
    _draw_one_panel(
        result,
        path,
        shares,
        xscale="linear",
        xticks=numbers,
        ylim=(0.0, 1.1),
        xlabel="GPUs",
        ylabel="time to an equal gap, one GPU = 1",
    )


def draw_fronts(result: dict[str, Any], path: Path) -> None:
    """Draw the fronts of two objectives, a curve a method."""
    first, *methods = renamed(path.stem, result)["columns"]
    chosen = {method: column for column, method in enumerate(methods, 1)}
    _draw_one_panel(
        result,
        path,
        columns_over(result, 0, chosen),
        yscale="log",
        xlabel=first,
        ylabel="shortest by the other",
    )


PICTURES = {
    "gaps_in_short": draw_gaps_in_short,
    "fronts_curves": draw_fronts,
    "several_gpus": draw_several_gpus,
    "gpu_gap_over_time": draw_gap_over_time,
    "gpu_growth": draw_growth,
    "gpu_as_trials": draw_trials,
    "gpu_climbers": draw_climbers,
    "gpu_climbers_moves": draw_climbers_moves,
    "gpu_climbers_quality": draw_climbers_quality,
}
# Picture -> its result, where that has another name.
SOURCES = {"gaps_in_short": "gpu_gap_over_time"}


def main() -> None:
    """Draw every picture whose result exists."""
    for name, draw in PICTURES.items():
        result = ROOT / "benchmarks" / "results" / f"{SOURCES.get(name, name)}.json"
        if not result.is_file():
            print(f"nothing to draw: there is no {result.relative_to(ROOT)}")
            continue
        path = ROOT / "docs" / "images" / f"{name}.svg"
        draw(json.loads(result.read_text(encoding="utf-8")), path)
        print(f"written: {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
