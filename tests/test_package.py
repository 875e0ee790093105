"""The wheel, installed where the checkout is not: everything it needs must be inside."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from numba.core.caching import _CacheLocator

ROOT = Path(__file__).resolve().parents[1]

subfolder = _CacheLocator.get_suitable_cache_subpath  # of NUMBA_CACHE_DIR, for a file

PROGRAM = """
import pathlib, pymoo_gpuaco
from pymoo.optimize import minimize
from pymoo_gpuaco.backends.cuda.device.sources import folder
here = pathlib.Path(pymoo_gpuaco.__file__).parent
assert "site-packages" in str(here), here
assert here in folder().parents, folder()
assert list(folder().rglob("*.cu")), "no kernels in the wheel"
assert (here / "py.typed").exists()
climbers = pymoo_gpuaco.GPU2OptIHC(backend="cpu")  # whose few functions are compiled soon
result = minimize(pymoo_gpuaco.load_tsp("gr17"), climbers, seed=1)
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
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(source),
    ]
    subprocess.run(build, check=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_kernels_instances_and_types_and_is_pure(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert wheel.name.endswith("-py3-none-any.whl")
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
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
    run = subprocess.run(
        command, cwd=folder, env={**kept, **environment}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_the_installed_wheel_solves_from_another_folder(installed, tmp_path):
    cache, own = tmp_path / "cache", os.environ.get("NUMBA_CACHE_DIR")
    cache.mkdir()
    (site,) = installed.parents[1].glob("lib/python3*/site-packages")
    for path in ROOT.glob("pymoo_gpuaco/**/__init__.py"):  # the same sources: nothing is compiled once more
        folder = Path(own, subfolder(str(path))) if own else path.parent / "__pycache__"
        folder.mkdir(parents=True, exist_ok=True)
        (cache / subfolder(str(site / path.relative_to(ROOT)))).symlink_to(folder)
    assert answer([installed, "-c", PROGRAM], tmp_path, NUMBA_CACHE_DIR=str(cache)).endswith("solved")


APPLICATION = """
from pymoo_gpuaco import GPU2OptIHC, solve

if __name__ == "__main__":
    print(round(solve("gr17", algorithm=GPU2OptIHC(backend="auto"), seconds=5, seed=1).length))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the user's cache is elsewhere")
def test_a_frozen_application_solves_and_keeps_its_compiled_code_for_the_user(installed, tmp_path):
    pytest.importorskip("PyInstaller", reason="pip install pyinstaller")
    (tmp_path / "application.py").write_text(APPLICATION)
    left_out = [
        f"--exclude-module={name}" for name in ("dask", "distributed", "pandas", "networkx", "pytest")
    ]
    answer([installed, "-m", "PyInstaller", "--log-level=ERROR", *left_out, "application.py"], tmp_path)
    program = tmp_path / "dist" / "application" / "application"
    cache = tmp_path / "user"
    kept = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        assert answer([program], folder, XDG_CACHE_HOME=str(cache)) == "2085"
        assert list(folder.iterdir()) == []
        kept.append({file.name: file.stat().st_mtime_ns for file in (cache / "pymoo_gpuaco").rglob("*.nb?")})
    assert any(name.endswith(".nbc") for name in kept[0])
    assert kept[0] == kept[1]
