"""The rooms of the package: who may import whom, and where, as CONTRIBUTING.md says under Rules of the code."""

from __future__ import annotations

import ast
import graphlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import pymoo_gpuaco

pytestmark = pytest.mark.static
PACKAGE = "pymoo_gpuaco"
#: from the bottom up: a room imports from itself and from those before it. Below all lies `_version`, above all the
#: front doors, which are the other files at the root of the package; those of them that a room opens have a place here.
ROOMS = (
    "checks",
    "runtime",
    "problems",
    "candidates",
    "colony",
    "memetic",
    "pareto",
    "backends",
    "algorithms",
    "operators",
    "islands",
    "recorder",
    "visualization",
    "versions",
    "checkpoint",
    "cli",
    "__pyinstaller",
)
BELOW_ALL = "_version"
#: what a function may import: not everybody has it, or it takes long and few runs need it
OPTIONAL = {"cloudpickle", "distributed", "openpyxl", "pycuda"}
#: what a room imports from nowhere outside the package
FORBIDDEN = {"algorithms": {"numba", "pycuda"}, "backends": {"pymoo"}}


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


def imports_of(module: str, modules: dict[str, Path]) -> Iterator[Import]:
    """Return the modules that a module imports, anywhere in it."""
    package = module.split(".")[: None if modules[module].name == "__init__.py" else -1]

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
                    whole = f"{source}.{name.name}"
                    yield Import(module, child.lineno, whole if whole in modules else source, inside)
            function = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from visit(child, inside or function)

    yield from visit(ast.parse(modules[module].read_text(encoding="utf-8")), False)


def room(module: str) -> str | None:
    """The room that a module of the package lies in; None at its root."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in ROOMS else None


def level(module: str) -> int:
    """Return the layer of a module of the package."""
    own = room(module)
    if own is not None:
        return ROOMS.index(own)
    return -1 if module == f"{PACKAGE}.{BELOW_ALL}" else len(ROOMS)


def faults(folder: Path) -> list[str]:
    """Whatever breaks a rule, in words."""
    modules = read(folder)
    found = [
        f"{module} lies in no room"
        for module, path in modules.items()
        if room(module) is None and path.parent != folder
    ]
    needs: dict[str, set[str]] = {}
    for module in modules:
        needs[module] = set()
        for one in imports_of(module, modules):
            where, outside = f"{module}:{one.line} imports {one.target}", one.target.split(".")[0]
            if outside == PACKAGE:
                if one.target != module:
                    needs[module].add(one.target)
                if one.inside:
                    found.append(f"{where} inside a function")
                if level(one.target) > level(module):
                    found.append(f"{where}, which lies above it")
                continue
            if one.inside and outside not in OPTIONAL:
                found.append(f"{where} inside a function")
            if outside in FORBIDDEN.get(room(module) or "", ()):
                found.append(f"{where}, which has no place there")
        if re.search(r"\b(import_module|__import__)\b", modules[module].read_text(encoding="utf-8")):
            found.append(f"{module} imports by name")
    graphlib.TopologicalSorter(needs).prepare()  # fails where modules need each other
    return found


def test_every_import_keeps_to_the_rooms():
    assert faults(Path(pymoo_gpuaco.__file__).parent) == []


def test_one_module_reads_the_clocks_of_the_machine():
    """A test can step all of them at once."""
    modules = read(Path(pymoo_gpuaco.__file__).parent)
    asking = [m for m in modules if any(one.target == "time" for one in imports_of(m, modules))]
    assert asking == [f"{PACKAGE}.runtime.clock"]


def test_every_room_and_every_optional_package_is_there():
    modules = read(Path(pymoo_gpuaco.__file__).parent)
    assert {room(module) for module in modules} - {None} == set(ROOMS)
    inside = {
        one.target.split(".")[0] for module in modules for one in imports_of(module, modules) if one.inside
    }
    assert inside == OPTIONAL
