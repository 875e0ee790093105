"""Turn benchmarks/results/*.json into Markdown: ``python docs/generate_tables.py``.

Every result file has this form, and becomes docs/generated/<its name>.md:

    {"title": str, "date": "YYYY-MM-DD", "commit": str, "machine": {name: value}, "command": str,
     "parameters": {name: value}, "columns": [str], "rows": [[number, str or null]], "notes": [str]}

docs/generated/page_<page>.md includes the results of one page, as ``PAGES`` sorts them by their names. A table of many
rows is folded; docs/images/<its name>.svg follows it where that picture exists. README.md shows the table and the notes
of one result between the lines ``<!-- benchmark: name -->`` and ``<!-- /benchmark -->``, the gaps over time of a few
instances between ``<!-- gap-over-time -->`` and ``<!-- /gap-over-time -->``, and sentences on cpu_gap_over_time and
gpu_assignment between ``<!-- beside-fast-tsp -->`` or ``<!-- assignment -->`` and its end. Pages include the first one
as beside_fast_tsp.md, and summaries of a result or several as NAME_in_short.md. Without the result a place stays empty.
The parameters of a colony in the literature, from ``pymoo_gpuaco.colony.published``, become published_CLASS.md.
Results are never edited. ``RENAMED`` lists algorithms that have another name since; a note names the earlier one.
``COLUMN_NAMES`` has the columns that the tables name otherwise.
``--check`` writes nothing and exits with status 1 if a file is not what this script would write.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pymoo_gpuaco
from pymoo_gpuaco.colony.published import PUBLISHED, SOURCES

ROOT = Path(__file__).resolve().parents[1]
_FIELDS = {
    "title": str,
    "date": str,
    "commit": str,
    "machine": dict,
    "command": str,
    "parameters": dict,
    "columns": list,
    "rows": list,
    "notes": list,
}
# Page -> beginnings of the names of its results, in the order of the page. The longest beginning decides.
PAGES = {
    "quality": (
        "gpu_gap_over_time",
        "cpu_gap_over_time",
        "gpu_growth",
        "gpu_time_to_optimum",
        "cpu_time_to_optimum",
        "gpu_atsp",
        "cpu_atsp",
        "gpu_asymmetric",
        "cpu_asymmetric",
        "gpu_paths",
        "cpu_paths",
        "gpu_hamiltonian",
        "cpu_hamiltonian",
        "gpu_precedence",
        "cpu_precedence",
        "gpu_assignment",
        "cpu_assignment",
        "fronts",
        "gpu_fronts",
        "ga_",
    ),
    "colonies": (
        "gpu_family",
        "family",
        "gpu_colony_strength",
        "cpu_colony_strength",
        "gpu_evaporation",
        "cpu_evaporation",
        "cpu_acotsp",
        "gpu_local_search",
        "gpu_friedman",
        "gpu_against_cpu",
        "gpu_acs",
        "cpu_acs",
        "gpu_as_tournament",
        "gpu_climbers_quality",
        "gpu_climbers_moves",
    ),
    "several_gpus": ("several_gpus", "gpu_cores", "record_run"),
    "islands": ("islands_gpu", "islands_cpu", "islands_migration", "islands_fronts"),
    "speed": (
        "gpu_variants",
        "gpu_iteration",
        "gpu_as",
        "gpu_acs_time",
        "gpu_acs_memory",
        "gpu_climbers",
        "gpu_profile",
        "cpu_vs_c",
        "cpu_kicks",
        "cpu_rate",
        "cpu_overhead",
        "cpu_threads",
        "cpu_memory",
        "cpu_first_run",
        "",
    ),
}
# Instances of the table in README.md.
HEADLINE = ("pr2392", "rl11849", "d18512", "pla85900", "random:1000000")
_AUTHORS = {"000": "Uchida et al.", "004": "Murooka et al."}
# A table of more rows is folded.
_FOLD_ABOVE = 8
_MEMETIC, _FRONTS = ("GPUMMAS", "GPUMemetic"), ("GPUMOACO", "GPU2PPLS")
# Result -> (name then, name now) of the algorithm that it measured.
RENAMED = {
    **dict.fromkeys(("gpu_profile_windows", "islands_gpu"), _MEMETIC),
    "gpu_fronts": _FRONTS,
}
# Column in a result -> its name in the tables.
COLUMN_NAMES = {
    "s to the gap of the fewest": "s to an equal gap",
    "tours/s over the fewest": "tours/s, fewest islands = 1",
    "overhead a round, ms": "overhead per migration interval, ms",
}
# With these arguments GPUMMAS was then, too, the colony that it is now.
_A_COLONY = r"\((?:construction=.full|local_search|n_ants)"
_PLACE = re.compile(r"(<!-- benchmark: (?P<name>[\w-]+) -->\n).*?(<!-- /benchmark -->)", re.DOTALL)
_GAPS_PLACE = re.compile(r"(<!-- gap-over-time -->\n).*?(<!-- /gap-over-time -->)", re.DOTALL)
_SENTENCE_PLACE = re.compile(r"(<!-- (beside-fast-tsp|assignment) -->).*?(<!-- /\2 -->)", re.DOTALL)
_NONE_YET = (
    "No result is committed yet. `make bench`, `bench-gpu` and `bench-islands` measure on your machine.\n"
)


def read(path: Path) -> dict[str, Any]:
    """Return a result. Raises ValueError, naming the file, for one that has not the form above."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path.name}: not JSON: {error}") from error
    if not isinstance(result, dict) or result.keys() != _FIELDS.keys():
        raise ValueError(f"{path.name}: must be an object with exactly {', '.join(_FIELDS)}")
    for field, kind in _FIELDS.items():
        if not isinstance(result[field], kind):
            raise ValueError(f"{path.name}: {field} must be a {kind.__name__}, got {result[field]!r}")
    try:
        datetime.date.fromisoformat(result["date"])
    except ValueError as error:
        raise ValueError(f"{path.name}: date must be YYYY-MM-DD, got {result['date']!r}") from error
    width = len(result["columns"])
    for number, row in enumerate(result["rows"]):
        if not isinstance(row, list) or len(row) != width:
            raise ValueError(f"{path.name}: row {number} must have {width} cells, got {row!r}")
    return result


def renamed(name: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return the result with the algorithm's name of today, by ``RENAMED``, and a note of its earlier name."""
    if name not in RENAMED:
        return result
    then, now = RENAMED[name]
    call = re.compile(rf"{then}(?!{_A_COLONY})(?:, focused)?(?P<arguments>\([^()]*\))?")

    def text(value: Any) -> Any:
        return re.sub(rf"{then}(?!{_A_COLONY})", now, value) if isinstance(value, str) else value

    def cell(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        today = call.sub(lambda found: f"{now}{found['arguments'] or ''}", value)
        return today.replace('construction="focused", n_ants=', "population_size=")

    return {
        **result,
        "title": text(result["title"]),
        "columns": [cell(column) for column in result["columns"]],
        "rows": [[cell(value) for value in row] for row in result["rows"]],
        "notes": [*map(text, result["notes"]), f"`{now}` was named `{then}` at that commit."],
    }


def table(result: dict[str, Any]) -> str:
    """Return the rows as a Markdown table, without empty columns; those of numbers are aligned to the right."""
    filled = [c for c in range(len(result["columns"])) if any(row[c] is not None for row in result["rows"])]
    columns = [result["columns"][c] for c in filled]
    rows = [[row[c] for c in filled] for row in result["rows"]]
    numeric = [
        any(_is_number(row[c]) for row in rows) and all(_is_number(row[c]) or row[c] is None for row in rows)
        for c in range(len(columns))
    ]
    names = [_cited(COLUMN_NAMES.get(column, column)) for column in columns]
    lines = [_line(names), _line(["---:" if right else "---" for right in numeric])]
    lines += [_line([_cell(cell) for cell in row]) for row in rows]
    return "\n".join(lines) + "\n"


def section(result: dict[str, Any], picture: str | None = None) -> str:
    """Return a heading, the table, the picture if there is one, the notes and, in a box, the origin of the numbers."""
    rows = table(result).rstrip()
    if len(result["rows"]) > _FOLD_ABOVE:
        rows = f'??? abstract "Table, {len(result["rows"])} rows"\n\n' + textwrap.indent(rows, "    ")
    parts = [f"## {result['title']}", rows]
    if picture is not None:
        parts.append(f"![{result['title']}]({picture})")
    notes = _notes(result)
    made = [f"- Measured {result['date']} at commit `{result['commit']}` with `{result['command']}`."]
    for name in ("machine", "parameters"):
        if result[name]:
            values = "; ".join(f"{key}: {_plain(value)}" for key, value in result[name].items())
            made.append(f"- {name.capitalize()}: {values}.")
    box = '??? note "When, where and how"\n\n' + "\n".join(f"    {line}" for line in made)
    return "\n\n".join([*parts, *filter(None, [notes]), box]) + "\n"


def generate(results: Path, readme: str) -> tuple[dict[str, str], str]:
    """Return the files of docs/generated by name, and README.md with its places filled."""
    read_all = {path.stem: renamed(path.stem, read(path)) for path in sorted(results.glob("*.json"))}
    files = {f"{name}.md": section(result, _picture(name)) for name, result in read_all.items()}
    for page in PAGES:
        names = [name for name in read_all if page_of(name)[0] == page]
        files[f"page_{page}.md"] = _includes(sorted(names, key=lambda name: (page_of(name)[1], name)))

    def fill(place: re.Match[str]) -> str:
        result = read_all.get(place["name"])
        return place[1] + ("" if result is None else f"\n{table(result)}\n{_notes(result)}\n\n") + place[3]

    def fill_gaps(place: re.Match[str]) -> str:
        result = read_all.get("gpu_gap_over_time_runs")
        short = "" if result is None else gaps_in_short(result, HEADLINE)
        return place[1] + (f"\n{short}\n" if short else "") + place[2]

    over_time = read_all.get("cpu_gap_over_time")
    sentences = {
        "beside-fast-tsp": "" if over_time is None else beside_fast_tsp(over_time),
        "assignment": assignment_in_short(read_all.get("gpu_assignment")),
    }
    files["beside_fast_tsp.md"] = sentences["beside-fast-tsp"] + "\n"
    files["assignment_in_short.md"] = sentences["assignment"] + "\n"
    over_time = read_all.get("gpu_gap_over_time_runs")
    files["gaps_in_short.md"] = ("" if over_time is None else gaps_in_short(over_time)) + "\n"
    files["ranks_in_short.md"] = ranks_in_short(read_all) + "\n"
    files["kernels_in_short.md"] = kernels_in_short(read_all) + "\n"
    files["cores_in_short.md"] = cores_in_short(read_all.get("gpu_cores")) + "\n"
    files["trails_in_short.md"] = trails_in_short(read_all) + "\n"
    files["mmas_in_short.md"] = mmas_in_short(read_all.get("cpu_colony_strength")) + "\n"
    files |= published_parameters()
    readme = _SENTENCE_PLACE.sub(lambda place: place[1] + sentences[place[2]] + place[3], readme)
    return files, _GAPS_PLACE.sub(fill_gaps, _PLACE.sub(fill, readme))


def published_parameters() -> dict[str, str]:
    """Return a file published_CLASS.md for each colony: defaults and published parameters, then the sources."""
    files = {}
    for name in dict.fromkeys(row.algorithm for row in PUBLISHED):
        rows = [row for row in PUBLISHED if row.algorithm == name]
        arguments = list(dict.fromkeys(argument for row in rows for argument in row.arguments))
        usual = {field.name: field.default for field in dataclasses.fields(getattr(pymoo_gpuaco, name))}
        lines = [_line(["source", *(f"`{argument}`" for argument in arguments)])]
        lines += [
            _line(["---"] * (len(arguments) + 1)),
            _line(["defaults", *(_of(usual, a) for a in arguments)]),
        ]
        notes = []
        for row in rows:
            lines.append(
                _line([f"`{row.source}`", *(_of(row.arguments, argument) for argument in arguments)])
            )
            apart = f" Apart: {row.apart}." if row.apart else ""
            kind = "with" if row.local_search else "without"
            notes.append(f"- `{row.source}` {kind} local search: {SOURCES[row.source]}; {row.where}.{apart}")
        files[f"published_{name.lower()}.md"] = "\n".join([*lines, "", *notes]) + "\n"
    return files


def _of(arguments: Mapping[str, Any], name: str) -> str:
    return f"`{arguments[name]!r}`".replace("'", '"') if name in arguments else "-"


def beside_fast_tsp(result: dict[str, Any]) -> str:
    """Return a sentence on the cells of a table of gaps over time in which fast-tsp stands beside GPUMemetic."""
    columns = result["columns"]
    times = [c for c, column in enumerate(columns) if re.fullmatch(r"[\d.]+ s", column)]
    gaps: dict[str, dict[str, list[float | None]]] = {}
    for row in result["rows"]:
        solvers = gaps.setdefault(row[columns.index("instance")], {})
        solvers[row[columns.index("solver")]] = [row[c] for c in times]
    both = {name: solvers for name, solvers in gaps.items() if "fast-tsp" in solvers and len(solvers) == 2}
    pairs = [
        (ours, theirs)
        for solvers in both.values()
        for ours, theirs in zip(*(solvers[s] for s in sorted(solvers)), strict=True)
        if ours is not None and theirs is not None
    ]
    if not pairs:
        return ""
    behind = [ours - theirs for ours, theirs in pairs if ours > theirs]
    sentence = (
        f"On {', '.join(both)} the gap of `GPUMemetic` is at most that of fast-tsp with the same number of threads in "
        f"{len(pairs) - len(behind)} of {len(pairs)} measurements"
    )
    return (
        f"{sentence}, and at most {max(behind):.2g} percentage points larger." if behind else f"{sentence}."
    )


def _notes(result: dict[str, Any]) -> str:
    return "\n".join(f"- {_cited(note)}" for note in result["notes"])


def _cited(text: str) -> str:
    """Return the text with the authors of a paper instead of its number in docs/references.md."""
    return re.sub("[Pp]aper (000|004)", lambda found: _AUTHORS[found[1]], text)


def gaps_in_short(result: dict[str, Any], only: Sequence[str] | None = None) -> str:
    """Return a caption and rows of median gaps of GPUMemetic() by time, in brackets fast-tsp on all cores."""
    columns = [result["columns"].index(c) for c in ("instance", "solver", "limit, s", "runs", "median gap %")]
    gaps: dict[str, dict[float, dict[str, float]]] = {}
    ours, other = "", ""
    runs: dict[float, set[int]] = {}  # time limit -> numbers of runs
    other_runs: dict[float, set[int]] = {}
    for instance, solver, limit, count, gap in ([row[c] for c in columns] for row in result["rows"]):
        if only is not None and instance not in only:
            continue
        if solver.startswith("GPUMemetic()"):
            ours = solver
            runs.setdefault(limit, set()).add(count)
        elif not solver.endswith(" 1 core"):
            other = solver
            other_runs.setdefault(limit, set()).add(count)
        gaps.setdefault(instance, {}).setdefault(limit, {})[solver] = gap
    if not runs:
        return ""
    measured = {
        instance: at for instance, at in gaps.items() if any(ours in solvers for solvers in at.values())
    }

    def cell(at: dict[str, float]) -> str:
        if ours not in at:
            return "-"
        gap = f"{at[ours]:.3f}".replace("-0.000", "0.000")
        return f"{gap} ({at[other]:.3f})" if other in at else gap

    limits = sorted(runs)
    lines = [_line(["instance", *(f"{limit:g} s" for limit in limits)])]
    lines.append(_line(["---", *["---:"] * len(limits)]))
    lines += [
        _line([instance, *(cell(at.get(limit, {})) for limit in limits)]) for instance, at in measured.items()
    ]
    device = str(result["machine"].get("gpu 0", result["machine"].get("processor", ""))).split(",")[0]
    caption = (
        "Gap to the best known length in percent after a wall time that includes set-up: "
        f"`GPUMemetic()` on an {device}, {_times(runs)}."
    )
    if other:
        # A parameter names the commit at which fast-tsp was measured, if that was another run.
        machine = "such a machine" if "fast-tsp" in result["parameters"] else "the same machine"
        caption += f" In brackets: {other.replace(',', ' on')} of {machine}, {_times(other_runs)}."
    caption += f"{_yardsticks(result, measured)} An earlier run of the process had compiled the code."
    return f"{caption}\n\n" + "\n".join(lines) + "\n"


def ranks_in_short(results: dict[str, dict[str, Any]]) -> str:
    """Return the mean rank of each colony: on a GPU and on a CPU, in equal time, with local search and without."""
    kinds = {"GPU": "gpu_family_time", "CPU": "family_time"}
    if not all(name in results for name in kinds.values()):
        return ""
    ranks: dict[str, dict[tuple[str, str], float]] = {}
    for kind, name in kinds.items():
        columns = [results[name]["columns"].index(c) for c in ("local search", "algorithm", "mean rank")]
        for search, algorithm, rank in ([row[c] for c in columns] for row in results[name]["rows"]):
            ranks.setdefault(algorithm, {})[kind, search] = rank
    cells = [(kind, search) for search in ("yes", "no") for kind in kinds]
    names = {"yes": "with local search", "no": "without"}
    lines = [_line(["algorithm", *(f"{kind}, {names[search]}" for kind, search in cells)])]
    lines.append(_line(["---", *["---:"] * len(cells)]))
    lines += [
        _line([f"`{name}`", *(_cell(of.get(cell)) for cell in cells)])
        for name, of in sorted(ranks.items(), key=lambda item: item[1].get(cells[0], 0))
    ]
    return "\n".join(lines) + "\n"


def _of_mmas(result: dict[str, Any], *names: str) -> list[list[Any]]:
    """Return the columns ``names`` of the rows of GPUMMAS."""
    colony, *columns = (result["columns"].index(name) for name in ("colony", *names))
    return [[row[c] for c in columns] for row in result["rows"] if row[colony] == "GPUMMAS"]


def trails_in_short(results: dict[str, dict[str, Any]]) -> str:
    """Return a sentence on the gaps of GPUMMAS without trails, on a GPU and on two cores."""
    parts = []
    for where, name in (("a GPU", "gpu_colony_strength"), ("two cores", "cpu_colony_strength")):
        if name not in results:
            return ""
        pairs = _of_mmas(results[name], "gap, %", "gap with alpha = 0, %")
        larger = sorted(without - gap for gap, without in pairs)
        parts.append(f"by {larger[0]:.1f} to {larger[-1]:.1f} percentage points on {where}")
    return f"With `alpha=0` the gap of `GPUMMAS` after equal time is larger {' and '.join(parts)}."


def mmas_in_short(result: dict[str, Any] | None) -> str:
    """Return a sentence on the gaps of GPUMMAS on two cores after the shortest limit of the table."""
    if result is None:
        return ""
    rows = _of_mmas(result, "instance", "limit, s", "gap, %")
    limit = min(row[1] for row in rows)
    gaps = " and ".join(f"{_cell(gap)} % on {name}" for name, seconds, gap in rows if seconds == limit)
    return f"`GPUMMAS()` on two cores ends at {gaps} after {limit:g} s."


def kernels_in_short(results: dict[str, dict[str, Any]]) -> str:
    """Return the kernels of the papers on 1002 cities: here, the author's code on the same GPU, as published."""
    lists, everything, acs, climbs, total = (
        results.get(name)
        for name in ("gpu_variants_lists", "gpu_variants_all", "gpu_acs_time", "gpu_climbers", "gpu_as_total")
    )
    if lists is None or everything is None or acs is None or climbs is None or total is None:
        return ""

    def best(result: dict[str, Any], gpu: str) -> float:
        column = result["columns"].index("pr1002")
        return min(row[column] for row in result["rows"] if row[0].startswith(gpu))

    def row_of(result: dict[str, Any], *beginning: Any) -> dict[str, Any]:
        row = next(row for row in result["rows"] if tuple(row[: len(beginning)]) == beginning)
        return dict(zip(result["columns"], row, strict=True))

    walk = row_of(acs, "pr1002", "sync", 1)
    moves = row_of(climbs, 1002)
    hybrid, tournament = (row_of(total, "pr1002", rule) for rule in ("hybrid", "acceptance_tournament"))
    rows = [
        ["MMAS, walk over 32 candidates, ms (best variant)"]
        + [best(lists, gpu) for gpu in ("H200, here", "H200, author", "V100")],
        ["MMAS, walk over all cities, ms (best variant)"]
        + [best(everything, gpu) for gpu in ("H200, here", "H200, author", "V100")],
        [
            "ACS, synchronous walk, ms",
            walk["construction, ms"],
            walk["author's ACS-GPU on an H200, ms"],
            walk["paper (GK104), ms"],
        ],
        [
            "AS, hybrid selection, 100 iterations, ms",
            hybrid["GPU, ms"],
            None,
            hybrid["paper 000, 100 iterations, ms"],
        ],
        [
            "AS, acceptance and tournament, 100 iterations, ms",
            tournament["GPU, ms"],
            None,
            tournament["paper 004, until equal quality, ms"],
        ],
        ["2-opt climbers, 10^9 moves/s", moves["tuned, 10^9/s"], moves["authors' code, 10^9/s"], None],
    ]
    lines = [_line(["pr1002, as many ants as cities", "here, H200", "author's code, H200", "as published"])]
    lines.append(_line(["---", "---:", "---:", "---:"]))
    lines += [_line([_cell(cell) for cell in row]) for row in rows]
    return "\n".join(lines) + "\n"


def cores_in_short(result: dict[str, Any] | None) -> str:
    """Return the median gaps of GPUMemetic() beside one GPU, a column for each number of cores."""
    if result is None:
        return ""
    columns = [result["columns"].index(c) for c in ("instance", "seconds", "cores", "gap %")]
    gaps: dict[str, dict[int, float]] = {}
    for instance, seconds, cores, gap in ([row[c] for c in columns] for row in result["rows"]):
        gaps.setdefault(f"{instance}, {seconds:g} s", {})[cores] = gap
    numbers = sorted(set().union(*gaps.values()))
    lines = [_line(["gap in percent", *(f"{number} cores" for number in numbers)])]
    lines.append(_line(["---", *["---:"] * len(numbers)]))
    lines += [_line([name, *(_cell(of.get(number)) for number in numbers)]) for name, of in gaps.items()]
    return "\n".join(lines) + "\n"


def _in_every_run(reached: str) -> bool:
    """Return True for "5 of 5"."""
    count, runs = reached.split(" of ")
    return count == runs


def assignment_in_short(result: dict[str, Any] | None) -> str:
    """Return a sentence on the instances of QAPLIB that reach their best known values."""
    if result is None:
        return ""
    names = ("reached", "median s to it", "gap %, end", "limit s")
    columns = [result["columns"].index(c) for c in names]
    rows = [[row[c] for c in columns] for row in result["rows"]]
    always = [seconds for reached, seconds, *_ in rows if _in_every_run(reached)]
    others = [(gap, limit) for reached, _, gap, limit in rows if not _in_every_run(reached)]
    sentence = (
        f"Of {len(rows)} instances of QAPLIB `GPUMMASQAP()` on an H200 brings {len(always)} to the best known value in "
        f"every run, {sum(seconds <= 1.0 for seconds in always)} of them within a second"
    )
    if not others:
        return f"{sentence}."
    gaps, limits = zip(*others, strict=True)
    return f"{sentence}; the others are at most {max(gaps):.2g} % above it after {max(limits):g} s."


def _yardsticks(result: dict[str, Any], only: Iterable[str]) -> str:
    """Return a sentence on the lengths that gaps refer to where no best length is known."""
    if "gap to" not in result["columns"]:
        return ""
    instance, to = (result["columns"].index(column) for column in ("instance", "gap to"))
    names: dict[str, list[str]] = {}
    for row in result["rows"]:
        if (
            row[to] != "best known"
            and row[instance] in only
            and row[instance] not in names.setdefault(row[to], [])
        ):
            names[row[to]].append(row[instance])
    texts = [f"{length} for {' and '.join(instances)}" for length, instances in names.items() if instances]
    return f" Random maps: gap to the expected length, {', '.join(texts)} (area A)." if texts else ""


def _times(runs: dict[float, set[int]]) -> str:
    """Return the number of runs behind each median, by time limit."""
    every = set().union(*runs.values())
    if every == {1}:
        return "one run each"
    whole = [limit for limit, counts in runs.items() if counts == {max(every)}]
    beyond = set().union(*(counts for limit, counts in runs.items() if limit not in whole))
    if beyond and whole and max(whole) < min(runs.keys() - whole):
        return f"medians of {max(every)} runs, and beyond {max(whole):g} s of {_span(beyond)}"
    return f"medians of {_span(every)} runs"


def _span(counts: set[int]) -> str:
    return f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"


def page_of(name: str) -> tuple[str, int]:
    """Return the page that shows a result, and its place there."""
    _, page, place = max(
        (len(beginning), page, place)
        for page, beginnings in PAGES.items()
        for place, beginning in enumerate(beginnings)
        if name.startswith(beginning)
    )
    return page, place


def _picture(name: str) -> str | None:
    """Path of a result's picture as a page in docs/ sees it, None without one."""
    path = ROOT / "docs" / "images" / f"{name}.svg"
    return f"images/{path.name}" if path.is_file() else None


def _includes(names: list[str]) -> str:
    lines = [f'--8<-- "docs/generated/{name}.md"' for name in names]
    return "\n\n".join(lines) + "\n" if lines else _NONE_YET


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _plain(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _cell(value: Any) -> str:
    # a long call may go on in the next line of its cell
    return "-" if value is None else re.sub(r"\((?=\S{9})", "(<wbr>", _plain(value))


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def main(argv: list[str] | None = None) -> int:
    """Write docs/generated and README.md, or compare them with ``--check``."""
    parser = argparse.ArgumentParser(description="Markdown tables from benchmarks/results/*.json.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; status 1 if a file is out of date"
    )
    arguments = parser.parse_args(argv)
    folder, readme = ROOT / "docs" / "generated", ROOT / "README.md"
    files, readme_text = generate(ROOT / "benchmarks" / "results", readme.read_text(encoding="utf-8"))
    wanted = {folder / name: text for name, text in files.items()} | {readme: readme_text}
    surplus = sorted(set(folder.glob("*.md")) - wanted.keys())
    stale = [p for p, text in wanted.items() if not p.is_file() or p.read_text(encoding="utf-8") != text]
    for path in stale + surplus:
        print(f"{'out of date' if arguments.check else 'written'}: {path.relative_to(ROOT)}")
    if arguments.check:
        return 1 if stale or surplus else 0
    folder.mkdir(exist_ok=True)
    for path in stale:
        path.write_text(wanted[path], encoding="utf-8")
    for path in surplus:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
