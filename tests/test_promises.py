"""Every promise of the page "What you can rely on" has tests, and they exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "promises.md"

#: the beginning of each promise, in the order of the page, and the test files that check it
PROMISES = r"""
Every returned tour is a permutation of the | default_arguments engines every_tour extremes
A cycle has one length, bit by bit: it depends | tsp_problem
Local search ends with any weights, because a | scales
The unit does not matter: scaling the cities by a | scales
A lower bound is never above the optimum, and a | magnitudes
Every parameter in its documented range gives | extremes
The same seed, backend and versions give the same | default_arguments engines time_limits
A run that is pickled, copied or saved continues | default_arguments checkpoint fuzz_states
In a checkout, machine code of other sources is | compiled
`("time", seconds)` ends a run in the middle of a | default_arguments time_limits population custom_objective
After Ctrl-C the best tour so far | interrupts default_arguments ask_and_tell memetic_engines time_limits ppls
A time limit counts set-up and run, but no | set_up_time assignment compiling backend_choice
A resumed run counts its time limit like any | set_up_time termination
A proof of optimality makes no run late, and | lower_bound assignment display
A run that continues with another budget anneals | schedule
An interrupt at any moment leaves the process | threads set_up_whole
A process may fork while other threads build | threads set_up_whole
`GPUMemetic` ends within a few rounds of a time | memetic_engines
A long generation of a colony is split into | cuda_slices cuda_ends
A time limit changes no tour of a generation that | cuda_slices
`GPU2OptIHC` shortens its last launch to the time | cuda_slices
A kernel whose blocks wait for each other gives | cuda_barriers
A process that is interrupted in set-up ends with | cuda_exit cuda_nvcc
Too little device memory raises `MemoryError` | cuda_failures cuda_focused
A failing kernel raises `DeviceFailed` with the | cuda_failures
After a failure that makes CUDA unusable in a | cuda_failures
A missing, failing, killed or hanging nvcc gives | cuda_nvcc
A kernel cache that cannot be written costs one | cuda_nvcc
An empty `CUDA_VISIBLE_DEVICES` or a missing | cuda_failures
[Islands](islands.md) in the reproducible mode | islands islands_failures
A killed or stopped worker loses no best tour, | islands_failures islands_migration
If the scheduler dies, the run ends with its best | islands_failures
A cluster without workers never holds a run | islands_failures
Only holders of a run's keys can connect to its | islands
No local worker outlives its run. | islands_failures
A damaged input file, even a gzip bomb, raises | fuzz_files
`checkpoint.save` writes a complete file or | fuzz_states
A damaged checkpoint raises `ValueError` before | fuzz_states
Loading a checkpoint runs no code from the file. | checkpoint_harm
Checkpoints hold every run of this package's | checkpoint
The command line writes the tour before anything | cli_interrupts
A call of `setup` or `tell` that raises leaves | pymoo_copies ask_and_tell
A wrong argument is named together with its value | bad_input parameters doors
An argument of the wrong type never reaches | compiled
"""


def test_every_promise_has_its_tests():
    if not PAGE.is_file():
        pytest.skip("no docs beside the tests")
    page = PAGE.read_text(encoding="utf-8")
    rows = [row.split(" | ") for row in PROMISES.strip().splitlines()]
    for promise, (beginning, files) in zip(re.findall(r"^- (.+)$", page, re.M), rows, strict=True):
        assert promise.startswith(beginning)
        for name in files.split():
            text = (ROOT / "tests" / f"test_{name}.py").read_text(encoding="utf-8")
            assert "\ndef test_" in text or "    def test_" in text, name
    assert "tests/test_" not in page.replace("tests/test_promises.py", "")
