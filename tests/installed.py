"""Check that a wheel is for the Linux systems of its name, and measure first runs where it alone is installed.

python tests/installed.py FILE.whl PYTHON
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAMS = {
    "import": "import pymoo_gpuaco",
    "solve": "from pymoo_gpuaco import solve; print(solve('pcb442', seconds=1, seed=1).length)",
    "minimize": """
from pymoo.optimize import minimize
from pymoo_gpuaco import GPUMMAS, load_tsp
print(minimize(load_tsp("pcb442"), GPUMMAS(backend="cpu"), ("n_gen", 1), seed=1).F[0])
""",
}


def c_library(text: str) -> tuple[int, ...] | None:
    """Return the version of the C library in a platform tag."""
    found = re.search(r"manylinux_(\d+)_(\d+)_", text)
    return tuple(map(int, found.groups())) if found else None


def main(wheel: Path, python: Path) -> None:
    audit = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    shown = " ".join(subprocess.run(audit, capture_output=True, text=True, check=True).stdout.split())
    needed, named = c_library(shown.replace(wheel.name, "")), c_library(wheel.name)
    if needed is None or named is None or needed > named:
        sys.exit(f"{wheel.name} does not run on every Linux of its name: {shown}")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB; {shown}")
    pip = [python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"]
    packages = subprocess.run(pip, capture_output=True, text=True, check=True).stdout.split()
    print(*packages)
    if any(package.startswith(("numba=", "llvmlite=")) for package in packages):
        sys.exit("numba is installed with the wheel")
    for name, program in PROGRAMS.items():
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen([python, "-c", program], cwd=folder)
            _, status, used = os.wait4(process.pid, 0)
        if status:
            sys.exit(f"{name} failed")
        wall, processor = time.perf_counter() - began, used.ru_utime + used.ru_stime
        print(f"{name}: {wall:.2f} s, {processor:.2f} processor s, {used.ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]).absolute())
