"""``published(source="acotsp-1.03")`` of each colony beside Stuetzle's ACOTSP, with equal numbers of tours.

    python benchmarks/acotsp.py FOLDER --program ACOTSP [--seeds 3] [--tours 20000]

ACOTSP is the program, version 1.03, and FOLDER contains the TSPLIB files. Both use the parameters of its defaults: the
numbers of ants of the table in ``colony.published``, 20 candidates, and with local search 2-opt and a tenth of the
tours. Median gap over the seeds; the program makes them in one process.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import tempfile
from pathlib import Path

from harness import Table, gap, parser_for, problems_of

from pymoo_gpuaco import GPUACS, GPUAS, GPUBWAS, GPUEAS, GPUMMAS, GPURAS, summary

INSTANCES = ("kroA100", "d198", "pcb442")
FLAGS = {
    GPUAS: "--as",
    GPUEAS: "--eas",
    GPURAS: "--ras",
    GPUBWAS: "--bwas",
    GPUMMAS: "--mmas",
    GPUACS: "--acs",
}
HEADER = "instance | local search | colony | tours:0 | ACOTSP, %:2 | published, %:2 | flags of ACOTSP"
NOTES = (
    "Median gaps to the best known length. ACOTSP 1.03 as its author released it, without a limit of time.",
    "ACOTSP differs in details (pages of the colonies): eta = 1 / (d + 0.1), and how many trails BWAS mutates.",
)


def main() -> None:
    parser = parser_for(__doc__, seeds=3, only=INSTANCES, backend="cpu")
    parser.add_argument("--tours", type=int, default=20_000, help="of a run without local search")
    parser.add_argument("--program", type=Path, required=True, help="the program acotsp")
    options = parser.parse_args()
    table = Table("cpu_acotsp", "Published parameters beside ACOTSP", HEADER, {"seeds": options.seeds}, NOTES)
    for name, problem in problems_of(options.folder, options.only).items():
        for searched in (False, True):
            tours = options.tours // 10 if searched else options.tours
            for cls, system in FLAGS.items():
                flags = f"{system} -l {int(searched)} -s {tours} -t 0.01 -r {options.seeds} --seed 1 --quiet"
                command = [
                    options.program.resolve(),
                    *flags.split(),
                    "-i",
                    (options.folder / f"{name}.tsp").resolve(),
                ]
                with tempfile.TemporaryDirectory() as folder:
                    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
                lengths = re.findall(r"Best Solution in try \d+ is (\d+)", run.stdout)
                assert len(lengths) == options.seeds, run.stdout
                theirs = statistics.median(gap(float(length), problem.best_known) for length in lengths)
                colony = cls.published(searched, "acotsp-1.03", backend=options.backend)
                ours = statistics.median(
                    summary(problem, colony, ("n_eval", tours), seeds=options.seeds).gaps
                )
                table.add(name, "2-opt" if searched else "none", cls.__name__, tours, theirs, ours, flags)
    table.write()


if __name__ == "__main__":
    main()
