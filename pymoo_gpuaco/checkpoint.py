"""A run in a file: a zip of plain arrays and their description, which runs no code when it is read.

The description is a flat list of records, which refer to each other by position, so that shared objects stay shared.
A value within a record is None, a bool, a number, a string, or [i] for the object i. The kinds of records:

``["list" | "tuple" | "set" | "frozenset", values]``, ``["dict", keys, values]``, ``["bytes", array]``
``["array", array]``, ``["scalar", array]`` of numpy, and ``["objects", class, shape, values, state]``: a Population
``["generator", bit generator, its state, state of its seed sequence or null]``
``["known", name]``: a function or type; ``["new", class, state, items]``: an object, whose class takes the state back
``["made", class, names, values]``: a named tuple or frozen dataclass, made by its constructor
``["given", "problem" | "callback"]``: an object of the user's, which is passed to ``load``
"""

from __future__ import annotations

import dataclasses
import io
import json
import math
import zipfile
from collections.abc import Collection
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from pymoo.core import (
    callback,
    duplicate,
    evaluator,
    individual,
    population,
    problem,
    repair,
    termination,
    variable,
)
from pymoo.operators.sampling import lhs, rnd
from pymoo.problems.single import traveling_salesman
from pymoo.termination import collection, cv, default, fmin, ftol, max_eval, max_gen, max_time, robust, xtol
from pymoo.util import archive, sliding_window
from pymoo.util.display import column, display, multi, output, single

from pymoo_gpuaco import operators
from pymoo_gpuaco.algorithms import ALL_ALGORITHMS, GPU2PPLS
from pymoo_gpuaco.algorithms.ask_tell import Tours
from pymoo_gpuaco.algorithms.display import ColonyOutput, FrontOutput
from pymoo_gpuaco.algorithms.termination import ColonyTermination, FrontTermination
from pymoo_gpuaco.colony.parameters import LocalSearch
from pymoo_gpuaco.islands import FrontIslands, Islands
from pymoo_gpuaco.islands.island import RoundTermination
from pymoo_gpuaco.problems import TSP, MultiObjectiveTSP, OpenPath
from pymoo_gpuaco.problems.writing import write_whole
from pymoo_gpuaco.recorder import Recorder

# ---- The classes and functions that a file may name. A class may be added if no state that somebody else has written
# can make it run code, read memory that is not its own, or trust another process.

_OURS = (
    *(*ALL_ALGORITHMS.values(), GPU2PPLS, FrontIslands, Islands, RoundTermination, Tours),
    *(getattr(operators, name) for name in operators.__all__),
    *(ColonyOutput, ColonyTermination, FrontOutput, FrontTermination, LocalSearch),
    *(MultiObjectiveTSP, OpenPath, Recorder, TSP),
)
# Modules of pymoo whose classes are known.
_PYMOO: tuple[Any, ...] = (
    *(callback, duplicate, evaluator, individual, population, repair, termination, variable, lhs, rnd),
    *(traveling_salesman, collection, cv, default, fmin, ftol, max_eval, max_gen, max_time, robust, xtol),
    *(archive, sliding_window, column, display, multi, output, single),
)
# Without the modules: those may be moved, and the name stays.
_CLASSES: dict[Any, type] = {
    **{f"pymoo_gpuaco.{cls.__name__}": cls for cls in _OURS},
    **{
        f"pymoo.{name}": cls
        for module in _PYMOO
        for name, cls in vars(module).items()
        if isinstance(cls, type) and cls.__module__ == module.__name__
    },
    "pymoo.LoopedElementwiseEvaluation": problem.LoopedElementwiseEvaluation,
    "numpy.ndarray": np.ndarray,  # of objects
}
NAME_OF_CLASS: dict[Any, str] = {cls: name for name, cls in _CLASSES.items()}
ARRAYS_OF_OBJECTS = frozenset(cls for cls in _CLASSES.values() if issubclass(cls, np.ndarray))
#: classes whose constructors check what they are given
MADE = frozenset({Tours, LocalSearch})
NEW = frozenset(_CLASSES.values()) - ARRAYS_OF_OBJECTS - MADE
_CONSTANTS: dict[Any, Any] = {
    "bool": bool,
    "float": float,
    "int": int,
    "object": object,
    "numpy.sum": np.sum,
    "pymoo.ElementwiseEvaluationFunction": problem.ElementwiseEvaluationFunction,
    "pymoo.default_attr": duplicate.default_attr,
}
NAME_OF_CONSTANT = {id(constant): name for name, constant in _CONSTANTS.items()}
# Of numpy's bit generators those whose state is numbers alone: the others hold an index into a table, and numpy does
# not check it.
_BIT_GENERATORS: dict[Any, Any] = {cls.__name__: cls for cls in (np.random.PCG64, np.random.PCG64DXSM)}
_SEEDS = ("entropy", "spawn_key", "n_children_spawned")

_PLAIN = (type(None), bool, int, float, str)
_SEQUENCES: dict[Any, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}


def _entry(table: dict[Any, Any], name: Any) -> Any:
    """Return the entry of a table. Raises ValueError for the name of none."""
    if not isinstance(name, str) or name not in table:
        raise ValueError(f"it names {name!r:.100}, which this version of pymoo_gpuaco does not know")
    return table[name]


def _class(name: Any, among: Collection[type]) -> Any:
    """Return a class of a kind. Raises ValueError for the name of any other."""
    cls = _entry(_CLASSES, name)
    if cls not in among:
        raise ValueError(f"it is damaged: {name} is not of this kind of record")
    return cls


def _generator_record(generator: np.random.Generator) -> list[Any]:
    """Return the record of a generator. Raises TypeError for bit generators that are not known."""
    bits = generator.bit_generator
    seeds: Any = getattr(bits, "seed_seq", None)
    if type(bits) not in _BIT_GENERATORS.values() or not isinstance(seeds, np.random.SeedSequence | None):
        raise TypeError(
            f"a checkpoint holds random numbers of {', '.join(_BIT_GENERATORS)}, got {type(bits).__name__}"
        )
    spawned = None if seeds is None else {name: _numbers(getattr(seeds, name)) for name in _SEEDS}
    return ["generator", type(bits).__name__, dict(bits.state), spawned]


def _numbers(given: Any) -> Any:
    """Return numbers as JSON holds them."""
    if given is None:
        return None
    return int(given) if np.ndim(given) == 0 else [int(number) for number in given]


def _generator(name: Any, state: dict[str, Any], seeds: dict[str, Any] | None) -> np.random.Generator:
    """Return the generator of a record."""
    seeds = seeds or dict.fromkeys(_SEEDS, 0)
    made = _entry(_BIT_GENERATORS, name)(np.random.SeedSequence(**{key: seeds[key] for key in _SEEDS}))
    made.state = state
    return np.random.Generator(made)


# ---- writing


def name_of(thing: Any) -> str:
    """Return the full name of a class or function, or of the class of an object."""
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{named.__module__}.{named.__qualname__}"


def records_of(thing: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Describe an object and all that it refers to; return the description and arrays by name.

    Raises TypeError for objects of classes that are not known.
    """
    writer = _Writer(thing)
    root = writer.value(thing)
    while len(writer.records) < len(writer.things):  # one after the other: deep nesting needs no stack
        writer.records.append(writer.record(writer.things[len(writer.records)]))
    needs = {name: name_of(one) for name, one in writer.given.items()}
    return {"needs": needs, "root": root, "objects": writer.records}, writer.arrays


class _Writer:
    def __init__(self, thing: Any) -> None:
        self.records: list[list[Any]] = []
        self.things: list[Any] = []  # by place; they live until all is written, so that no id comes twice
        self.arrays: dict[str, Any] = {}
        self._places: dict[int, int] = {}  # by id
        parts = {name: getattr(thing, name, None) for name in ("problem", "callback")}
        # those of the user; a history has copies of the problem
        self.given = {
            name: one for name, one in parts.items() if one is not None and type(one) not in NAME_OF_CLASS
        }

    def value(self, thing: Any) -> Any:
        """Return a value as it stands in a record."""
        if type(thing) in _PLAIN:
            return thing
        if id(thing) not in self._places:
            self._places[id(thing)] = len(self.things)
            self.things.append(thing)
        return [self._places[id(thing)]]

    def _values(self, things: Any) -> list[Any]:
        return [self.value(thing) for thing in things]

    def _array(self, array: Any) -> str:
        name = f"array_{len(self.arrays) + 1}"
        self.arrays[name] = array
        return name

    def record(self, thing: Any) -> list[Any]:
        """Return the record of an object."""
        kind = type(thing)
        for name, one in self.given.items():
            if thing is one or (name == "problem" and kind is type(one)):
                return ["given", name]
        if kind in _SEQUENCES:
            return [_SEQUENCES[kind], self._values(thing)]
        if kind is dict:
            return ["dict", self._values(thing), self._values(thing.values())]
        if kind is bytes:
            return ["bytes", self._array(np.frombuffer(thing, np.uint8))]
        if kind is np.ndarray and not thing.dtype.hasobject:
            return ["array", self._array(thing)]
        if isinstance(thing, np.generic) and not thing.dtype.hasobject and kind.__module__ == "numpy":
            return ["scalar", self._array(np.array(thing))]
        if id(thing) in NAME_OF_CONSTANT:
            return ["known", NAME_OF_CONSTANT[id(thing)]]
        if kind is np.random.Generator:
            return _generator_record(thing)
        if kind not in NAME_OF_CLASS:
            raise TypeError(f"a checkpoint cannot hold objects of {name_of(thing)}: use dill, as pymoo does")
        return self._object(thing, NAME_OF_CLASS[kind])

    def _object(self, thing: Any, name: str) -> list[Any]:
        kind = type(thing)
        if kind in ARRAYS_OF_OBJECTS:
            state = getattr(thing, "__dict__", None)
            return ["objects", name, list(thing.shape), self._values(thing.reshape(-1)), self.value(state)]
        if kind in MADE:
            names = getattr(kind, "_fields", None) or [field.name for field in dataclasses.fields(kind)]
            return ["made", name, list(names), [self.value(getattr(thing, field)) for field in names]]
        state, items = (*thing.__reduce_ex__(2)[2:4], None)[:2]
        if isinstance(
            thing, Islands
        ):  # no file names a scheduler: who connects to one runs the code it sends
            state = {**state, "client": None}
        return ["new", name, self.value(state), None if items is None else self._values(items)]


def objects_of(description: dict[str, Any], arrays: dict[str, Any], given: dict[str, Any]) -> Any:
    """Make the objects that ``records_of`` described, with those of the user in ``given``.

    Called are known classes and functions alone: constructors of what is "made", ``__new__`` of the others, and
    their ``__setstate__``. Raises ValueError for records that make no object.
    """
    try:
        for name, cls in description["needs"].items():
            if name not in given:
                raise ValueError(f"its {name} is of {cls!s:.100}: pass it, load(path, {name}=..)")
        root = _Reader(description["objects"], arrays, given).value(description["root"])
    except ValueError:
        raise
    except Exception as error:  # records of another program, or of another version of this one
        raise ValueError(
            f"it is damaged or no run of this version of pymoo_gpuaco ({type(error).__name__}: {error})"
        ) from error
    for name, one in given.items():
        if hasattr(root, name):
            setattr(root, name, one)
    return root


class _Reader:
    def __init__(self, records: list[Any], arrays: dict[str, Any], given: dict[str, Any]) -> None:
        self._records, self._arrays, self._given = records, arrays, given
        self._made: dict[int, Any] = {}

    def value(self, value: Any) -> Any:
        """Return a value of a record; objects are made when they are first referred to."""
        if type(value) in _PLAIN:
            return value
        (place,) = value
        if type(place) is not int or not 0 <= place < len(self._records):
            raise ValueError(f"it is damaged: there is no object {place!r}")
        if place not in self._made:
            self._make(place, *self._records[place])
        return self._made[place]

    def _values(self, values: Any) -> list[Any]:
        return [self.value(value) for value in values]

    def _make(self, place: int, kind: str, *values: Any) -> None:
        """Make an object. One that can refer to itself is noted before it is filled."""
        made: Any
        if kind == "list":
            made = self._made[place] = []
            made.extend(self._values(values[0]))
        elif kind == "set":
            made = self._made[place] = set()
            made.update(self._values(values[0]))
        elif kind == "dict":
            made = self._made[place] = {}
            made.update(zip(self._values(values[0]), self._values(values[1]), strict=True))
        elif kind == "objects":
            self._make_objects(place, *values)
        elif kind == "new":
            self._make_new(place, *values)
        else:
            self._made[place] = self._constant(kind, *values)

    def _constant(self, kind: str, *values: Any) -> Any:
        """Make an object that cannot refer to itself."""
        if kind in ("tuple", "frozenset"):
            return {"tuple": tuple, "frozenset": frozenset}[kind](self._values(values[0]))
        if kind == "array":
            return self._arrays[values[0]]
        if kind == "scalar":
            return self._arrays[values[0]][()]
        if kind == "bytes":
            return self._arrays[values[0]].tobytes()
        if kind == "known":
            return _entry(_CONSTANTS, values[0])
        if kind == "generator":
            return _generator(*values)
        if kind == "given":
            return self._given[values[0]]
        if kind == "made":
            cls = _class(values[0], MADE)
            return cls(**dict(zip(values[1], self._values(values[2]), strict=True)))
        raise ValueError(f"it is damaged: there are no objects of the kind {kind!r:.50}")

    def _make_objects(self, place: int, name: Any, shape: Any, values: Any, state: Any) -> None:
        if math.prod(shape) != len(values):  # a few bytes must not ask for all memory
            raise ValueError("it is damaged: an array of objects is not as large as it says")
        made = np.empty(tuple(shape), object).view(_class(name, ARRAYS_OF_OBJECTS))
        self._made[place] = made
        for index, value in enumerate(values):
            made.reshape(-1)[index] = self.value(value)
        if state is not None:
            made.__dict__.update(self.value(state))

    def _make_new(self, place: int, name: Any, state: Any, items: Any) -> None:
        cls = _class(name, NEW)
        made = self._made[place] = cls.__new__(cls)
        if items is not None:
            list.extend(made, self._values(items))
        state = self.value(state)
        if isinstance(made, Islands):
            state = {**state, "client": None}
        if hasattr(cls, "__setstate__"):
            made.__setstate__(state)
        elif state is not None:
            made.__dict__.update(state)


__all__ = ["load", "save"]

FORMAT = 3
_DESCRIPTION = "run.json"


def save(algorithm: Any, path: str | PathLike[str]) -> None:
    """Write an algorithm to a file, from which ``load`` makes one that continues exactly.

    An older file at ``path`` is replaced only when the new one is complete. It is a zip of plain arrays (``np.load``
    shows them) and a JSON description. A problem and a callback of your own classes are left out: pass them to
    ``load``.

    Raises OSError where the file cannot be written, and TypeError that names the class of any other object of your own:
    use ``dill``, as pymoo does.
    """
    buffer = io.BytesIO()
    description, arrays = records_of(algorithm)
    np.savez(buffer, **arrays)
    with zipfile.ZipFile(buffer, "a") as file:
        file.writestr(_DESCRIPTION, json.dumps({"format": FORMAT, **description}, separators=(",", ":")))
    write_whole(path, buffer.getvalue())


def load(path: str | PathLike[str], *, problem: Any = None, callback: Any = None) -> Any:
    """Read an algorithm that ``save`` or the command line's ``--save`` has written; no code in the file runs.

    ``problem`` and ``callback`` replace those in the file; they are needed if they are of your own classes.

    Raises FileNotFoundError for a missing file, and ValueError that names the file if it is damaged, of another kind or
    version, or needs ``problem`` or ``callback``.
    """
    data = Path(path).read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in file.infolist()):
                raise ValueError("a member is compressed")  # a few bytes could ask for all memory
            description = json.loads(file.read(_DESCRIPTION))
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files if name != _DESCRIPTION}
        version = description["format"]
    except Exception as error:  # whatever a zip, JSON and arrays can have wrong
        raise ValueError(
            f"{path}: it is no file that pymoo_gpuaco.checkpoint.save or --save has written, or it is damaged "
            f"({type(error).__name__}: {error})"
        ) from error
    if version != FORMAT:
        raise ValueError(
            f"{path}: it has version {version!s:.20} of the format; this pymoo_gpuaco reads {FORMAT}"
        )
    given = {"problem": problem, "callback": callback}
    try:
        return objects_of(description, arrays, {name: one for name, one in given.items() if one is not None})
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
