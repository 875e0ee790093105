"""Register of all results: file, commit, later commits that changed what it measures, and the page that shows it.

    python benchmarks/register.py            # a Markdown table
    python benchmarks/register.py --check    # exit status 1 if a result of a headline table is stale

A result is stale if it was measured with changed files, at a commit that this history lacks, or before a commit that
changed one of its paths in ``MEASURES``, except commits that ``WITHOUT_EFFECT`` lists for its script.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"

_ENGINE = ("pymoo_gpuaco/backends/protocol.py", "pymoo_gpuaco/runtime")
_CPU = (*_ENGINE, "pymoo_gpuaco/backends/cpu")
_CUDA = (*_ENGINE, "pymoo_gpuaco/backends/cuda", "cuda_src/device", "cuda_src/instance")
_COLONY = ("pymoo_gpuaco/colony", "pymoo_gpuaco/candidates", "pymoo_gpuaco/algorithms")
_MEMETIC = ("pymoo_gpuaco/memetic", "pymoo_gpuaco/candidates", "pymoo_gpuaco/algorithms/memetic.py")
_WALKS = ("cuda_src/walks", "cuda_src/trails", "cuda_src/weights", "cuda_src/tours")
_FRONTS = ("pymoo_gpuaco/pareto", "pymoo_gpuaco/algorithms/ppls.py")
_ON_CARD = (*_CUDA, *_MEMETIC, "cuda_src/windows")
_COLONY_ON_CARD = (*_CUDA, *_COLONY, *_WALKS, "cuda_src/local_search")

#: Script in benchmarks/ -> files and folders that its results depend on
MEASURES = {
    "acotsp": (*_CPU, *_COLONY),
    "assignment": (*_CPU, *_CUDA, "pymoo_gpuaco/assignment", "cuda_src/assignment"),
    "asymmetric_kinds": (*_CPU, *_MEMETIC),
    "colony_strength": (*_COLONY_ON_CARD, "pymoo_gpuaco/backends/cpu", "cuda_src/faco"),
    "cores_beside_gpu": (*_ON_CARD, *_CPU),
    "cpu_acs": (*_CPU, *_COLONY),
    "cpu_first_run": ("pymoo_gpuaco",),
    "cpu_gap_over_time": (*_CPU, *_MEMETIC),
    "cpu_kicks": (*_CPU, "pymoo_gpuaco/memetic"),
    "cpu_scaling": (*_CPU, "pymoo_gpuaco/memetic"),
    "cpu_speed": (*_CPU, *_COLONY),
    "cpu_vs_c": (*_CPU, *_COLONY),
    "evaporation": (*_CPU, *_COLONY),
    "family": (
        *_COLONY_ON_CARD,
        *_MEMETIC,
        "pymoo_gpuaco/backends/cpu",
        "cuda_src/climbers",
        "cuda_src/faco",
    ),
    "front_curves": (*_CPU, *_FRONTS),
    "fronts": (*_CPU, *_CUDA, *_FRONTS, "cuda_src/pareto"),
    "ga_operators": (*_CPU, "pymoo_gpuaco/memetic", "pymoo_gpuaco/operators.py"),
    "gpu_acs": _COLONY_ON_CARD,
    "gpu_ant_system": _COLONY_ON_CARD,
    "gpu_ant_system_trials": _COLONY_ON_CARD,
    "gpu_atsp": (*_ON_CARD, *_CPU),
    "gpu_climbers": (*_CUDA, "cuda_src/climbers"),
    "gpu_friedman": (*_COLONY_ON_CARD, "pymoo_gpuaco/backends/cpu"),
    "gpu_gap_over_time": _ON_CARD,
    "gpu_growth": _ON_CARD,
    "gpu_local_search": _COLONY_ON_CARD,
    "gpu_profile": (*_COLONY_ON_CARD, "cuda_src/windows", "cuda_src/climbers"),
    "gpu_variants": _COLONY_ON_CARD,
    "hamiltonian_cycles": (*_CPU, *_MEMETIC),
    "island_fronts": ("pymoo_gpuaco/islands", *_CPU, *_FRONTS),
    "island_migration": ("pymoo_gpuaco/islands", *_CPU, *_MEMETIC),
    "islands": ("pymoo_gpuaco/islands", *_ON_CARD, *_CPU),
    "paths": (*_ON_CARD, *_CPU),
    "precedence": (*_CPU, *_CUDA, "pymoo_gpuaco/precedence", "cuda_src/precedence"),
    "record_run": _ON_CARD,
    "several_gpus": _ON_CARD,
    "time_limits": ("pymoo_gpuaco", "cuda_src"),
    "time_to_optimum": (*_ON_CARD, *_CPU),
}
_COLONIES = ("acotsp", "family", "gpu_acs", "gpu_ant_system", "gpu_variants")
_UNINTERRUPTED = tuple(script for script, paths in MEASURES.items() if "pymoo_gpuaco/runtime" in paths)
_ON_GPUS = ("gpu_gap_over_time", "gpu_growth", "record_run", "several_gpus")
_WITHOUT_WALKS = (*_ON_GPUS, "assignment", "cores_beside_gpu", "gpu_climbers")
#: Commit -> scripts whose results it did not change although it changed their paths, and the reason
WITHOUT_EFFECT = {
    "0c4ad8d2": (
        (*_COLONIES, *_ON_GPUS, "cores_beside_gpu"),
        "It changed the search of lists by a matrix. These instances have coordinates.",
    ),
    "10ca8e2e": (
        (*_COLONIES, *_ON_GPUS),
        "It changed varied first tours: of distinct points with fewer than 8 threads, and of other instances. Colonies "
        "make none, and the hosts of these GPUs had 16 threads or more. No two cities of these instances coincide.",
    ),
    "06e0d297": (
        (*_WITHOUT_WALKS, "family", "gpu_acs", "gpu_ant_system"),
        "It changed walks over rows in shared memory, with tabu='list' or 'compact', and of 1,160 to 1,210 cities. "
        "Others keep their launches.",
    ),
    "22c0eff1": (
        _WITHOUT_WALKS,
        "It changed kernels of walks and their launches, of which these scripts have none.",
    ),
    "797893c9": (
        _WITHOUT_WALKS,
        "It saves microseconds of the host in a launch of a walk. These scripts have none; their launches save less.",
    ),
    "c8a9d38e": (
        _UNINTERRUPTED,
        "It changed what remains after Ctrl-C. Only time_limits.py interrupts runs.",
    ),
    "4eddbb01": ((*_UNINTERRUPTED, "cpu_first_run", "time_limits"), "It moved a comment."),
}
#: beginnings of the names of results in headline tables: README, quality over time, papers' kernels, colonies, GPUs
HEADLINE = (
    "gpu_gap_over_time", "cpu_gap_over_time", "gpu_variants", "gpu_as_construction", "gpu_as_update", "gpu_as_total",
    "gpu_acs_time", "gpu_climbers", "gpu_family", "family", "several_gpus", "gpu_assignment", "gpu_cores",
)  # fmt: skip


class Row(NamedTuple):
    """One result in the register."""

    name: str
    commit: str
    later: int | None  # commits that changed what it measures; None if its commit cannot be compared
    without_effect: int  # commits that changed its paths but not its numbers
    page: str
    is_headline: bool

    @property
    def is_stale(self) -> bool:
        """True if the numbers may not hold for this checkout."""
        return self.later != 0


def register() -> list[Row]:
    """Return the rows of all results, by page and name."""
    sys.path.append(str(ROOT / "docs"))
    from generate_tables import page_of

    rows = []
    for path in sorted(RESULTS.glob("*.json")):
        result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        script = Path(result["command"].split()[1]).stem
        later = later_commits(result["commit"], MEASURES[script])
        affecting = later_commits(result["commit"], MEASURES[script], script)
        passed = (later or 0) - (affecting or 0)
        headline = path.stem.startswith(HEADLINE)
        rows.append(Row(path.stem, result["commit"], affecting, passed, page_of(path.stem)[0], headline))
    return sorted(rows, key=lambda row: (not row.is_headline, row.page, row.name))


@cache
def later_commits(commit: str, paths: tuple[str, ...], script: str | None = None) -> int | None:
    """Return the number of commits after ``commit`` that changed one of the paths, or None without that commit.

    script : commits without effect on its results are not counted.
    """
    if subprocess.run(_git("merge-base", "--is-ancestor", commit, "HEAD"), capture_output=True).returncode:
        return None
    listed = _git("rev-list", f"{commit}..HEAD", "--", *paths)
    found = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()
    without = tuple(name for name, (scripts, _) in WITHOUT_EFFECT.items() if script in scripts)
    return sum(not name.startswith(without) for name in found)


def _git(*arguments: str) -> list[str]:
    return ["git", "-C", str(ROOT), *arguments]


def main() -> int:
    """Print the register, or what is stale of the headline tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="only stale results of headline tables")
    check = parser.parse_args().check
    rows = register()
    shown = [row for row in rows if not check or (row.is_headline and row.is_stale)]
    print(
        "| result | headline | commit | later commits | without effect | page |\n|---|---|---|---:|---:|---|"
    )
    for row in shown:
        later = "unknown commit" if row.later is None else row.later
        headline = "yes" if row.is_headline else ""
        print(f"| {row.name} | {headline} | {row.commit} | {later} | {row.without_effect} | {row.page} |")
    in_headlines = [row for row in rows if row.is_headline]
    stale = sum(row.is_stale for row in in_headlines)
    print(f"\n{len(rows)} results; {stale} of {len(in_headlines)} in headline tables are stale")
    return int(check and stale > 0)


if __name__ == "__main__":
    sys.exit(main())
