"""Sequential ordering problems (TSPLIB, SOPLIB): gaps to the best known length after 1 and 10 seconds.

    python benchmarks/precedence.py FOLDER [FOLDER] [--seeds 5] [--seconds 1 10] [--backend cpu]
        [--acs PROGRAM] [--lkh PROGRAM]

FOLDER contains .sop files of TSPLIB or of SOPLIB (Montemanni, Smith and Gambardella 2008); files whose best known
length is not listed below are skipped. 19 instances take about 17 minutes.

``--acs`` is the program of Skinderowicz (2017), EACS with simulated annealing in its local search, ``--lkh`` LKH 3.
Both run on one core. Therefore each run has the processor time of ours on all threads, and one run per thread is made
in parallel. They run on the instances of ``BESIDE``, about 25 s each on two threads.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from harness import Table, gap, parser_for, runs_for

from pymoo_gpuaco import load_tsp
from pymoo_gpuaco.runtime.threads import thread_count

BEST_KNOWN = {
    "ESC07": 2125, "ESC11": 2075, "ESC12": 1675, "ESC25": 1681, "ESC47": 1288, "br17.10": 55, "br17.12": 55,
    "ft53.1": 7531, "ft70.1": 39313, "kro124p.1": 39420, "p43.1": 28140, "prob.42": 243, "rbg109a": 1038,
    "ry48p.1": 15805, "R.200.1000.15": 20481, "R.300.100.1": 26, "R.400.1000.30": 85128, "R.500.100.15": 5361,
    "R.700.1000.15": 66837,
}  # fmt: skip
NOTES = [
    "R.*: SOPLIB, others TSPLIB. R.300.100.1 has no precedence and is searched as an asymmetric path.",
    "Other programs run on one core, with the processor time of ours on all threads; one run per thread.",
]
BESIDE = (
    "kro124p.1",
    "prob.42",
    "R.200.1000.15",
    "R.300.100.1",
    "R.400.1000.30",
    "R.500.100.15",
    "R.700.1000.15",
)
# arguments of the program's README
EACS_SA = [
    "--alg=eacs",
    "--ants=10",
    "--phmem=std",
    "--ls=sop3exchange-sa",
    "--beta=2.0",
    "--q0=10",
    "--phi=0.01",
    "--rho=0.1",
    "--sa-cooling-ratio=0.9999",
    "--sa-init-accept-prob=0.1",
    "--sop-ls-sa-cooling-ratio=0.99",
    "--sop-ls-sa-init-accept-prob=0.1",
    "--trials=1",
]


def run_acs(program: Path, file: Path, seconds: float, seed: int) -> float:
    """Return the length of one run of EACS-SA."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            str(program.resolve()),
            *EACS_SA,
            f"--test={file.resolve()}",
            f"--timeout={seconds}",
            f"--seed={seed}",
        ]
        done = subprocess.run(
            [*command, f"--res_dir={folder}"], capture_output=True, text=True, check=True, cwd=folder
        )
    return float(re.findall(r"min: (\d+)", done.stdout)[-1])


def run_lkh(program: Path, file: Path, seconds: float, seed: int) -> float | None:
    """Return the length of one run of LKH; None if it found no tour that satisfies precedence."""
    with tempfile.TemporaryDirectory() as folder:
        problem, parameters = Path(folder) / "problem.sop", Path(folder) / "run.par"
        text = file.read_text()
        if "DIMENSION" not in text:  # SOPLIB's bare matrix
            matrix = np.loadtxt(file, dtype=np.int64)
            n, rows = len(matrix), "\n".join(" ".join(map(str, row)) for row in matrix)
            text = (
                f"NAME: x\nTYPE: SOP\nDIMENSION: {n}\nEDGE_WEIGHT_TYPE: EXPLICIT\n"
                f"EDGE_WEIGHT_FORMAT: FULL_MATRIX\nEDGE_WEIGHT_SECTION\n{n}\n{rows}\nEOF\n"
            )
        problem.write_text(text)
        parameters.write_text(
            f"SPECIAL\nPROBLEM_FILE = {problem}\nRUNS = 1\nMAX_TRIALS = 1000000\n"
            f"TIME_LIMIT = {seconds}\nSEED = {seed}\n"  # SPECIAL: LKH's setting for such problems
        )
        done = subprocess.run([program.resolve(), parameters], capture_output=True, text=True, check=True)
    penalty, cost = re.findall(r"Cost\.min = (\d+)_?(\d*)", done.stdout)[-1]
    return None if cost and int(penalty) else float(cost or penalty)


def mean_gap(
    run: Callable[..., float | None], program: Path, file: Path, seconds: float, best: float
) -> float | None:
    """Return the mean gap in percent of one run per thread; None if one of them found no tour."""
    threads = thread_count()
    with ThreadPoolExecutor(threads) as pool:
        lengths = list(
            pool.map(lambda seed: run(program, file, threads * seconds, seed), range(1, threads + 1))
        )
    found = [length for length in lengths if length is not None]
    return statistics.mean(gap(length, best) for length in found) if len(found) == threads else None


def main() -> None:
    parser = parser_for(__doc__, folder="none", seeds=5, backend="cpu")
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--seconds", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--acs", type=Path, help="the program of Skinderowicz (2017)")
    parser.add_argument("--lkh", type=Path, help="LKH 3")
    arguments = parser.parse_args()
    peers = {"EACS-SA": (run_acs, arguments.acs), "LKH 3": (run_lkh, arguments.lkh)}
    beside = {name: (run, program) for name, (run, program) in peers.items() if program is not None}
    files = {
        file.name.removesuffix(".sop"): file for f in arguments.folder for file in sorted(f.glob("*.sop"))
    }
    header = "instance | cities | best known"
    header += "".join(f" | gap %, {s:g} s:3 | best known reached, {s:g} s" for s in arguments.seconds)
    header += "".join(f" | {peer} gap %, {s:g} s:3" for s in arguments.seconds for peer in beside)
    table = Table(
        f"{'gpu' if arguments.backend == 'cuda' else 'cpu'}_precedence",
        "Sequential ordering: gap to the best known length",
        header,
        {"algorithm": "GPUMemetic()", "runs of each cell": arguments.seeds},
        NOTES,
    )
    for name, best in BEST_KNOWN.items():
        if name not in files:
            continue
        problem = load_tsp(files[name])
        cells: list[object] = []
        for seconds in arguments.seconds:
            runs = runs_for(problem, seconds, arguments.seeds, arguments.backend)
            reached = sum(run.length == best for run in runs)
            cells += [statistics.mean(gap(run.length, best) for run in runs), f"{reached} of {len(runs)}"]
        for seconds in arguments.seconds:
            for run, program in beside.values():
                cells.append(mean_gap(run, program, files[name], seconds, best) if name in BESIDE else None)
        table.add(name, problem.n_cities, best, *cells)
    table.write()


if __name__ == "__main__":
    main()
