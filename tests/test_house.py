"""Layers of the package: which folder may import which, as CONTRIBUTING.md says under Rules of the code."""

from __future__ import annotations

import ast
import functools
import graphlib
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import pymoo_gpuaco

pytestmark = pytest.mark.static
PACKAGE = "pymoo_gpuaco"
#: from the bottom up: a package imports itself and those before it. `_version` is below all, and the other files at the
#: root are above all, except those listed here.
PACKAGES = (
    "checks",
    "runtime",
    "problems",
    "candidates",
    "colony",
    "memetic",
    "precedence",
    "pareto",
    "assignment",
    "backends",
    "algorithms",
    "operators",
    "islands",
    "recorder",
    "visualization",
    "versions",
    "checkpoint",
    "solving",
    "cli",
    "__pyinstaller",
)
BELOW_ALL = {f"{PACKAGE}._version", f"{PACKAGE}._lazy"}
#: what a function may import: not everybody has it, or it takes long and few runs need it
OPTIONAL = {
    "argcomplete",
    "cloudpickle",
    "distributed",
    "fcntl",
    "matplotlib",
    "openpyxl",
    "pandas",
    "pycuda",
    "pymoo",
}
OPTIONAL |= {"scipy"}
#: modules of the package that a function may import, as they load much: for a picture; for any command but --version
LATE = {f"{PACKAGE}.visualization", f"{PACKAGE}.cli.commands"}
#: imports from outside that a package must not have
FORBIDDEN = {"algorithms": {"pycuda"}, "backends": {"pymoo"}}
#: compiles functions when the package is built; the only module that needs numba
BUILD = f"{PACKAGE}.runtime.build"
#: packages of engines and what they compute with; modules with compiled functions elsewhere keep the same rule
OF_ENGINES = {"checks", "runtime", "candidates", "colony", "memetic", "precedence", "pareto", "backends"}
#: all that they import, themselves or through other modules
FOR_ENGINES = {*sys.stdlib_module_names, "numpy", "scipy", PACKAGE}
COMPILES = f"{PACKAGE}.runtime.compiled"


class Import(NamedTuple):
    """One import of a module."""

    module: str
    line: int
    target: str  # a module of the package, or a name of another package
    inside: bool  # a function


def read(folder: Path) -> dict[str, Path]:
    """Every module of a package, by its full name."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = [folder.name, *path.relative_to(folder).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def for_type_checkers(path: Path) -> dict[str, str]:
    """Return the names that a file imports for type checkers alone, each with its module."""
    found = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for child in node.body:
                if isinstance(child, ast.ImportFrom):
                    found |= {name.name: str(child.module) for name in child.names}
    return found


def imports_of(module: str, modules: dict[str, Path]) -> Iterator[Import]:
    """Return the modules that a module imports, anywhere in it; a lazy name counts as its module."""
    package = module.split(".")[: None if modules[module].name == "__init__.py" else -1]
    lazy = {path: for_type_checkers(path) for path in modules.values() if path.name == "__init__.py"}

    def target(source: str, name: str) -> str:
        """Return the module that ``from source import name`` reaches in the end."""
        while source in modules and f"{source}.{name}" not in modules:
            further = lazy.get(modules[source], {}).get(name)
            if further is None:
                return source
            source = further
        return f"{source}.{name}" if f"{source}.{name}" in modules else source

    def visit(node: ast.AST, inside: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue  # nothing is imported when the module runs
            if isinstance(child, ast.Import):
                for name in child.names:
                    yield Import(module, child.lineno, name.name, inside)
            elif isinstance(child, ast.ImportFrom):
                base = package[: len(package) - child.level + 1] if child.level else []
                source = ".".join([*base, *([child.module] if child.module else [])])
                for name in child.names:
                    yield Import(module, child.lineno, target(source, name.name), inside)
            function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from visit(child, inside or function)

    yield from visit(ast.parse(modules[module].read_text(encoding="utf-8")), False)


def package_of(module: str) -> str | None:
    """Return the entry of PACKAGES that a module belongs to; None at the root."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in PACKAGES else None


def level(module: str) -> int:
    """Return the layer of a module of the package."""
    own = package_of(module)
    if own is not None:
        return PACKAGES.index(own)
    return -1 if module in BELOW_ALL else len(PACKAGES)


def faults(folder: Path) -> list[str]:
    """Whatever breaks a rule, in words."""
    modules = read(folder)
    found = [
        f"{module} belongs to no package"
        for module, path in modules.items()
        if package_of(module) is None and path.parent != folder
    ]
    needs: dict[str, set[str]] = {}
    for module in modules:
        needs[module] = set()
        for one in imports_of(module, modules):
            where, outside = f"{module}:{one.line} imports {one.target}", one.target.split(".")[0]
            if outside == PACKAGE:
                if one.target != module:
                    needs[module].add(one.target)
                if one.inside and one.target not in LATE:
                    found.append(f"{where} inside a function")
                if level(one.target) > level(module):
                    found.append(f"{where}, which lies above it")
                continue
            if one.inside and outside not in OPTIONAL:
                found.append(f"{where} inside a function")
            if outside in FORBIDDEN.get(package_of(module) or "", ()):
                found.append(f"{where}, which has no place there")
            if outside in ("numba", "llvmlite") and module != BUILD:
                found.append(f"{where}, which only {BUILD} needs")
        by_name = re.search(r"\b(import_module|__import__)\b", modules[module].read_text(encoding="utf-8"))
        if by_name and module not in (f"{PACKAGE}._lazy", BUILD):
            found.append(f"{module} imports by name")
    graphlib.TopologicalSorter(needs).prepare()  # fails where modules need each other
    return found


def test_every_import_keeps_to_the_layers():
    assert faults(Path(pymoo_gpuaco.__file__).parent) == []


def test_a_wheel_has_every_package():
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11 or later")
    described = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    packages = set(described["tool"]["setuptools"]["packages"])
    folders = {path.parent for path in Path(pymoo_gpuaco.__file__).parent.rglob("__init__.py")}
    root = Path(pymoo_gpuaco.__file__).parents[1]
    found = {".".join(folder.relative_to(root).parts) for folder in folders}
    assert packages - {f"{PACKAGE}.cuda_src"} == found


def test_one_module_reads_the_clocks_of_the_machine():
    """A test can step all of them at once."""
    modules = read(Path(pymoo_gpuaco.__file__).parent)
    asking = [m for m in modules if any(one.target == "time" for one in imports_of(m, modules))]
    assert asking == [f"{PACKAGE}.runtime.clock"]


def test_every_package_and_every_optional_package_is_there():
    modules = read(Path(pymoo_gpuaco.__file__).parent)
    assert {package_of(module) for module in modules} - {None} == set(PACKAGES)
    inside = {
        one.target.split(".")[0] for module in modules for one in imports_of(module, modules) if one.inside
    }
    assert inside == OPTIONAL | {PACKAGE}


def imported(modules: dict[str, Path]) -> dict[str, set[str]]:
    """Return what each module imports when it is imported itself: modules with their packages, other packages."""
    found: dict[str, set[str]] = {}
    for module in modules:
        targets = {module, *(one.target for one in imports_of(module, modules) if not one.inside)}
        inner = {name for name in targets if name.split(".")[0] == PACKAGE}
        packages = {name[: dot.start()] for name in inner for dot in re.finditer(r"\.", name)}
        found[module] = {name.split(".")[0] for name in targets - inner} | (inner | packages) - {module}
    return found


def way_out(module: str, needs: dict[str, set[str]], allowed: set[str]) -> list[str] | None:
    """Return the shortest way from a module over imports to a package that is not allowed, or None."""
    ways = [[module]]
    seen = {module}
    for way in ways:
        for name in sorted(needs.get(way[-1], ())):
            if name not in needs and name not in allowed:
                return [*way, name]
            if name in needs and name not in seen:
                seen.add(name)
                ways.append([*way, name])
    return None


def engine_modules(modules: dict[str, Path], needs: dict[str, set[str]]) -> list[str]:
    """Return the modules with compiled functions, and those of the packages of engines."""
    return [n for n in modules if n != BUILD and (COMPILES in needs[n] or package_of(n) in OF_ENGINES)]


def test_engines_and_compiled_functions_need_neither_pymoo_nor_pictures():
    modules = read(Path(pymoo_gpuaco.__file__).parent)
    needs = imported(modules)
    ways = [way_out(name, needs, FOR_ENGINES) for name in engine_modules(modules, needs)]
    assert len(ways) > 110
    assert [" > ".join(way) for way in ways if way] == []


def test_a_way_to_pymoo_over_lazy_names_is_found(tmp_path):
    package = tmp_path / PACKAGE
    (package / "problems").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "problems/__init__.py").write_text(
        f"if TYPE_CHECKING:\n    from {PACKAGE}.problems.tsp import TSP\n"
    )
    (package / "problems/tsp.py").write_text("from pymoo.core.problem import Problem\n")
    (package / "checks.py").write_text(f"from {PACKAGE}.problems import TSP\n")
    (package / "operators.py").write_text(f"import numpy\nfrom {PACKAGE} import problems\n")
    needs = imported(read(package))
    way = way_out(f"{PACKAGE}.checks", needs, FOR_ENGINES)
    assert way == [f"{PACKAGE}.checks", f"{PACKAGE}.problems.tsp", "pymoo"]
    assert way_out(f"{PACKAGE}.operators", needs, FOR_ENGINES) is None
    assert faults(package) == [
        f"{PACKAGE}.checks:1 imports {PACKAGE}.problems.tsp, which lies above it",
    ]


def test_engines_are_imported_where_only_numpy_and_scipy_are_installed():
    modules = read(Path(pymoo_gpuaco.__file__).parent)
    program = f"""
import importlib, importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] not in {FOR_ENGINES!r} and not name.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

before = set(sys.modules)
sys.meta_path.insert(0, Missing())
for module in {engine_modules(modules, imported(modules))!r}:
    importlib.import_module(module)
print(sorted({{name.partition(".")[0] for name in set(sys.modules) - before}} & {{"pymoo"}}))
"""
    # what a .pth file of the environment imports is no matter: ``before``
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr


@pytest.mark.parametrize("package", ["", ".problems", ".cli"])
def test_lazy_names_are_those_of_type_checkers_and_of_all(package):
    module = importlib.import_module(PACKAGE + package)
    source = Path(str(module.__file__))
    (call,) = (
        node
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_names"
    )
    table = ast.literal_eval(call.args[1])
    assert {name: f"{module.__name__}.{of}" for of, names in table.items() for name in names.split()} == (
        for_type_checkers(source)
    )
    assert set(module.__all__) - {"__version__", "main"} == set(for_type_checkers(source))
    assert set(module.__all__) <= set(dir(module))
    assert all(getattr(module, name) is not None for name in module.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'GPUMMS'"):
        _ = module.GPUMMS


HEAVY = {"matplotlib", "numba", "numpy", "pymoo", "scipy"}
#: what neither an algorithm nor a problem in the plane needs
RARE = {
    "dask",
    "distributed",
    "matplotlib",
    "pycuda",
    "pymoo.problems.single.traveling_salesman",
    "scipy.cluster",
    "scipy.optimize",
    f"{PACKAGE}.cli",
}


@pytest.mark.parametrize(
    ("program", "rare"),
    [
        (f"import {PACKAGE}", HEAVY),
        (f"import {PACKAGE}.cli; {PACKAGE}.cli.main(['--version'])", HEAVY),
        (f"from {PACKAGE} import GPUMemetic, GPUMMAS, load_tsp; load_tsp('gr17')", RARE),
        (f"import {PACKAGE}.cli.commands", {"matplotlib", "pycuda", "distributed"}),
    ],
)
def test_what_is_not_used_is_not_loaded(program, rare):
    loaded = f"import sys; print(sorted(set(sys.modules) & {rare!r}), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}; {loaded}"], capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == "[]"


def test_an_interrupt_while_the_command_line_is_loaded_is_one_line():
    program = f"""
import sys

class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == "numpy":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from {PACKAGE}.cli import main
sys.exit(main(["info"]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "\npymoo-gpuaco: interrupted\n")
