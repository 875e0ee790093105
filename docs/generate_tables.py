"""Turn benchmarks/results/*.json into Markdown: ``python docs/generate_tables.py``.

Every result file has this form, and becomes docs/generated/<its name>.md:

    {"title": str, "date": "YYYY-MM-DD", "commit": str, "machine": {name: value}, "command": str,
     "parameters": {name: value}, "columns": [str], "rows": [[number, str or null]], "notes": [str]}

docs/generated/page_<page>.md includes the results of one page, as ``PAGES`` sorts them by their names. A table is
followed by docs/images/<its name>.svg where that picture exists. README.md shows the table and the notes of one result
between the lines ``<!-- benchmark: name -->`` and ``<!-- /benchmark -->``; between ``<!-- gap-over-time -->`` and
``<!-- /gap-over-time -->`` it shows gpu_gap_over_time_runs in short, and between ``<!-- beside-fast-tsp -->`` and
``<!-- /beside-fast-tsp -->`` what cpu_gap_over_time comes to, in a sentence that pages include as
docs/generated/beside_fast_tsp.md. Without the result a place stays empty.
Results are never edited: where an algorithm has another name since, ``RENAMED`` says so and the tables name both.
``--check`` writes nothing and exits with status 1 if a file is not what this script would write.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import sys
from pathlib import Path
from typing import Any

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
# Page -> how the names of its results begin, in the order of the page; the last page takes what no other has.
PAGES = {
    "quality": (
        "gpu_gap_over_time",
        "gpu_growth",
        "gpu_colony_strength",
        "cpu_colony_strength",
        "gpu_local_search",
        "gpu_atsp",
        "cpu_atsp",
        "gpu_asymmetric",
        "cpu_asymmetric",
        "gpu_paths",
        "cpu_paths",
        "gpu_precedence",
        "cpu_precedence",
        "gpu_hamiltonian",
        "cpu_hamiltonian",
        "gpu_time_to_optimum",
        "cpu_time_to_optimum",
        "cpu_gap_over_time",
        "cpu_quality",
        "ga_",
        "fronts",
        "gpu_fronts",
        "gpu_friedman",
    ),
    "family": ("family", "gpu_family", "gpu_colony_strength"),
    "others": ("gpu_variants", "gpu_against_cpu", "cpu_vs_c", "cpu_kicks"),
    "acs": ("cpu_acs", "gpu_acs"),
    "ant_system": ("gpu_as", "as_"),
    "climbers": ("gpu_climbers",),
    "islands": ("several_gpus", "islands_gpu", "islands_cpu", "islands_migration", "islands_fronts"),
    "speed": (
        "gpu_windows",
        "gpu_iteration",
        "gpu_profile",
        "cpu_rate",
        "cpu_overhead",
        "cpu_threads",
        "cpu_memory",
        "cpu_first_run",
        "",
    ),
}
_MEMETIC, _FRONTS = ("GPUMMAS", "GPUMemetic"), ("GPUMOACO", "GPU2PPLS")
# Result -> (name then, name now) of the algorithm that it measured.
RENAMED = {
    **dict.fromkeys(
        (
            "cpu_asymmetric_kinds",
            "cpu_asymmetric_memory",
            "cpu_atsp",
            "cpu_first_run",
            "cpu_gap_over_time",
            "cpu_hamiltonian_cycles",
            "cpu_memory",
            "cpu_paths",
            "cpu_quality",
            "cpu_threads",
            "cpu_time_limits",
            "cpu_time_to_optimum",
            "gpu_atsp",
            "gpu_gap_over_time",
            "gpu_gap_over_time_runs",
            "gpu_growth",
            "gpu_profile_windows",
            "gpu_time_limits",
            "gpu_time_to_optimum",
            "islands_cpu",
            "islands_gpu",
        ),
        _MEMETIC,
    ),
    **dict.fromkeys(("fronts", "fronts_curves", "fronts_united", "gpu_fronts"), _FRONTS),
}
# With these arguments GPUMMAS was then, too, the colony that it is now.
_A_COLONY = r"\((?:construction=.full|local_search|n_ants)"
_PLACE = re.compile(r"(<!-- benchmark: (?P<name>[\w-]+) -->\n).*?(<!-- /benchmark -->)", re.DOTALL)
_GAPS_PLACE = re.compile(r"(<!-- gap-over-time -->\n).*?(<!-- /gap-over-time -->)", re.DOTALL)
_SENTENCE_PLACE = re.compile(r"(<!-- beside-fast-tsp -->).*?(<!-- /beside-fast-tsp -->)", re.DOTALL)
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
    """Return the result with the algorithm's name of today, by ``RENAMED``: cells and columns have both names."""
    if name not in RENAMED:
        return result
    then, now = RENAMED[name]
    call = re.compile(rf"{then}(?!{_A_COLONY})(?:, focused)?(?P<arguments>\([^()]*\))?")

    def text(value: Any) -> Any:
        return re.sub(rf"{then}(?!{_A_COLONY})", now, value) if isinstance(value, str) else value

    def cell(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        both = call.sub(lambda found: f"{now}{found['arguments'] or ''} (named {then} then)", value)
        return both.replace('construction="focused", n_ants=', "population_size=")

    return {
        **result,
        "title": text(result["title"]),
        "columns": [cell(column) for column in result["columns"]],
        "rows": [[cell(value) for value in row] for row in result["rows"]],
        "notes": [*map(text, result["notes"]), f"`{now}` was named `{then}` at that commit."],
    }


def table(result: dict[str, Any]) -> str:
    """Return the rows as a Markdown table; columns of numbers are aligned to the right."""
    columns, rows = result["columns"], result["rows"]
    numeric = [
        any(_is_number(row[c]) for row in rows) and all(_is_number(row[c]) or row[c] is None for row in rows)
        for c in range(len(columns))
    ]
    lines = [_line(columns), _line(["---:" if right else "---" for right in numeric])]
    lines += [_line([_cell(cell) for cell in row]) for row in rows]
    return "\n".join(lines) + "\n"


def section(result: dict[str, Any], picture: str | None = None) -> str:
    """Return a heading, the table, the picture if there is one, the notes and, in a box, how the numbers were made."""
    parts = [f"## {result['title']}", table(result).rstrip()]
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
        return place[1] + ("" if result is None else f"\n{gaps_in_short(result)}\n") + place[2]

    over_time = read_all.get("cpu_gap_over_time")
    sentence = "" if over_time is None else beside_fast_tsp(over_time)
    files["beside_fast_tsp.md"] = sentence + "\n"
    readme = _SENTENCE_PLACE.sub(lambda place: place[1] + sentence + place[2], readme)
    return files, _GAPS_PLACE.sub(fill_gaps, _PLACE.sub(fill, readme))


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
        f"Measured on {', '.join(both)}, its gap is smaller than that of fast-tsp on as many threads, or as small, in "
        f"{len(pairs) - len(behind)} of {len(pairs)} cells"
    )
    return (
        f"{sentence}, and behind by {max(behind):.2g} percentage points at most."
        if behind
        else f"{sentence}."
    )


def _notes(result: dict[str, Any]) -> str:
    return "\n".join(f"- {note}" for note in result["notes"])


def gaps_in_short(result: dict[str, Any]) -> str:
    """Return a line an instance: mean gaps of GPUMemetic() at each time, in brackets those of fast-tsp on all cores."""
    columns = [result["columns"].index(c) for c in ("instance", "solver", "limit, s", "runs", "mean gap %")]
    gaps: dict[str, dict[float, dict[str, float]]] = {}
    ours, other = "", ""
    runs: dict[float, set[int]] = {}  # how many were made for each time
    other_runs: dict[float, set[int]] = {}
    for instance, solver, limit, count, gap in ([row[c] for c in columns] for row in result["rows"]):
        if solver.startswith("GPUMemetic()"):
            ours = solver
            runs.setdefault(limit, set()).add(count)
        elif not solver.endswith(" 1 core"):
            other = solver
            other_runs.setdefault(limit, set()).add(count)
        gaps.setdefault(instance, {}).setdefault(limit, {})[solver] = gap
    limits = sorted({limit for at in gaps.values() for limit in at})

    def cell(at: dict[str, float]) -> str:
        if ours not in at:
            return "-"
        gap = f"{at[ours]:.3f}".replace("-0.000", "0.000")
        return f"{gap} ({at[other]:.3f})" if other in at else gap

    lines = [
        _line(["instance", *(f"{limit:g} s" for limit in limits)]),
        _line(["---", *["---:"] * len(limits)]),
    ]
    for instance, at in gaps.items():
        if not any(ours in solvers for solvers in at.values()):
            continue
        lines.append(_line([instance, *(cell(at[limit]) if limit in at else "-" for limit in limits)]))
    if not runs:
        return ""
    device = str(result["machine"].get("gpu 0", result["machine"].get("processor", ""))).split(",")[0]
    caption = (
        f"Percent above the best known length{_yardsticks(result)} after so many seconds of wall time, set-up counted: "
        f"{ours.replace('GPUMemetic()', '`GPUMemetic()`')} on an {device}, {_times(runs)}"
    )
    # where fast-tsp was not measured in the same run, it was on a machine that tells the same of itself
    machine = "such a machine" if "fast-tsp" in result["parameters"] else "the same machine"
    caption += (
        f"; in brackets {other.replace(',', ' on')} of {machine}, {_times(other_runs)}." if other else "."
    )
    # `pymoo-gpuaco solve pla7397 --time 1` was ready after 1.0 s where code had been compiled before
    caption += (
        " The process had made a run before: its first also reads what was compiled, about a second there."
    )
    picture = _picture("gpu_gap_over_time")
    shown = [] if picture is None else [f"![Gap over wall time](docs/{picture})\n"]
    return "\n".join([f"{caption}\n", "\n".join(lines) + "\n", *shown])


def _yardsticks(result: dict[str, Any]) -> str:
    """Say to what gaps are told where no best length is known."""
    if "gap to" not in result["columns"]:
        return ""
    instance, to = (result["columns"].index(column) for column in ("instance", "gap to"))
    told: dict[str, list[str]] = {}
    for row in result["rows"]:
        if row[to] != "best known" and row[instance] not in told.setdefault(row[to], []):
            told[row[to]].append(row[instance])
    words = [f"{' and '.join(names)} above {length}" for length, names in told.items()]
    return f" ({', '.join(words)}, A being the area)" if words else ""


def _times(runs: dict[float, set[int]]) -> str:
    """Say how many runs the numbers are means of, by the time that each had."""
    every = set().union(*runs.values())
    if every == {1}:
        return "one run each"
    whole = [limit for limit, counts in runs.items() if counts == {max(every)}]
    beyond = set().union(*(counts for limit, counts in runs.items() if limit not in whole))
    if beyond and whole and max(whole) < min(runs.keys() - whole):
        return f"means of {max(every)} runs, and beyond {max(whole):g} s of {_span(beyond)}"
    return f"means of {_span(every)} runs"


def _span(counts: set[int]) -> str:
    return f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"


def page_of(name: str) -> tuple[str, int]:
    """Return the page that shows a result, and its place there."""
    return next(
        (page, place)
        for page, beginnings in PAGES.items()
        for place, beginning in enumerate(beginnings)
        if name.startswith(beginning)
    )


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
    return "-" if value is None else _plain(value)


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
