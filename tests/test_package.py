"""The wheel, installed where the checkout is not: everything it needs must be inside."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs_build
ROOT = Path(__file__).resolve().parents[1]

PROGRAM = """
import pathlib, sys, pymoo_gpuaco
from pymoo.optimize import minimize
from pymoo_gpuaco.backends.cuda.device.sources import folder
here = pathlib.Path(pymoo_gpuaco.__file__).parent
assert "site-packages" in str(here), here
assert here in folder().parents, folder()
assert list(folder().rglob("*.cu")), "no kernels in the wheel"
assert (here / "py.typed").exists()
for name in ("numba", "llvmlite"):
    sys.modules[name] = None  # not installed where a wheel is
result = minimize(pymoo_gpuaco.load_tsp("gr17"), pymoo_gpuaco.GPUMMAS(backend="cpu"), ("n_gen", 50), seed=1)
assert result.F[0] == 2085
print("solved")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel from a copy of what git tracks or would track, so that no stray file slips in."""
    folder = tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    source = folder / "source"
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    objects = ROOT / "build" / "compiled-pymoo_gpuaco"  # of the same sources
    if objects.is_dir():
        shutil.copytree(objects, source / "build" / objects.name)
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(folder),
        str(source),
    ]
    subprocess.run(build, check=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_machine_code_for_any_python_kernels_instances_and_types(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert wheel.name.endswith(f"-py3-none-{platform}.whl")
    assert "pymoo_gpuaco/_compiled.so" in names
    kernels = {f"pymoo_gpuaco/{p.relative_to(ROOT)}" for p in (ROOT / "cuda_src").rglob("*.cu*")}
    assert kernels
    assert kernels <= set(names)
    assert "pymoo_gpuaco/problems/data/pcb442.tsp" in names
    assert "pymoo_gpuaco/py.typed" in names
    assert not [n for n in names if n.startswith(("tests/", "docs/", "benchmarks/"))]


def test_every_folder_of_python_files_is_a_listed_package(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    missing = {
        str(p.relative_to(ROOT))
        for p in (ROOT / "pymoo_gpuaco").rglob("*.py")
        if "__pycache__" not in p.parts
    } - names
    assert not missing


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Python of an environment with the wheel; the dependencies are borrowed, the checkout's own install is not."""
    home = tmp_path_factory.mktemp("installed") / "env"
    venv.create(home, with_pip=False)
    site = next((home / "lib").glob("python3*/site-packages"))
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(site),
        str(wheel),
    ]
    subprocess.run(install, check=True)
    (site / "borrowed.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return home / "bin" / "python"


def answer(command, folder, **environment):
    """Return the output of a command in a folder, without the checkout on its path."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    run = subprocess.run(
        command, cwd=folder, env={**kept, **environment}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_the_installed_wheel_solves_from_another_folder(installed, tmp_path):
    assert answer([installed, "-c", PROGRAM], tmp_path).endswith("solved")


APPLICATION = """
from pymoo_gpuaco import GPU2OptIHC, solve

if __name__ == "__main__":
    print(round(solve("gr17", algorithm=GPU2OptIHC(backend="auto"), seconds=5, seed=1).length))
"""


@pytest.mark.slow
def test_a_frozen_application_solves(installed, tmp_path):
    pytest.importorskip("PyInstaller", reason="pip install pyinstaller")
    (tmp_path / "application.py").write_text(APPLICATION)
    left_out = [
        f"--exclude-module={name}"
        for name in ("dask", "distributed", "numba", "pandas", "networkx", "pytest")
    ]
    answer([installed, "-m", "PyInstaller", "--log-level=ERROR", *left_out, "application.py"], tmp_path)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    assert answer([tmp_path / "dist" / "application" / "application"], folder) == "2085"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("compiler", "has_ziglang", "said"),
    [
        ("sh -x", False, "['sh', '-x']"),
        ("icc", True, f"[{sys.executable!r}, '-m', 'ziglang', 'cc']"),
        ("", False, "no C compiler to link the compiled functions: install gcc, clang, or `pip install ziglang`"),
    ],
)  # fmt: skip
def test_a_compiler_of_the_system_or_of_the_package_index_links_the_library(
    compiler, has_ziglang, said, tmp_path
):
    (tmp_path / "sh").symlink_to("/bin/sh")  # the only program on the PATH
    (tmp_path / "ziglang.py").touch()
    missing = "" if has_ziglang else "import sys; sys.modules['ziglang'] = None; "
    run = subprocess.run(
        [sys.executable, "-c", missing + "from pymoo_gpuaco.runtime.build import linker; print(linker())"],
        cwd=ROOT,
        env={**os.environ, "CC": compiler, "PATH": str(tmp_path), "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert run.stdout + run.stderr == said + "\n"
