"""Runs in files: a zip of plain arrays and a description of objects; reading a file runs no code in it.

The description is a flat list of records, which refer to each other by position, so that shared objects stay shared.
A value within a record is None, a bool, a number, a string, or [i] for the object i. The kinds of records:

``["list" | "tuple" | "set", values]``, ``["dict", keys, values]``
``["array", array]``, ``["scalar", array]`` of NumPy, and ``["objects", class, shape, values, state]``: a Population
``["generator", bit generator, its state, state of its seed sequence or null]``
``["known", name]``: a function or type; ``["new", class, state, items]``: an object, restored by ``__setstate__``
``["made", class, names, values]``: a named tuple or frozen dataclass, created by its constructor
``["given", "problem" | "callback"]``: an object of a user's class, passed to ``load``
"""

from __future__ import annotations

import dataclasses
import io
import json
import logging
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

from pymoo_gpuaco import checks, operators
from pymoo_gpuaco.algorithms import ALL_ALGORITHMS, GPU2PPLS, GPUMMASQAP
from pymoo_gpuaco.algorithms.display import ColonyOutput, FrontOutput
from pymoo_gpuaco.algorithms.individuals import Permutations
from pymoo_gpuaco.algorithms.permutation import PermutationAlgorithm
from pymoo_gpuaco.algorithms.termination import ColonyTermination, FrontTermination
from pymoo_gpuaco.colony.parameters import LocalSearch
from pymoo_gpuaco.islands import FrontIslands, Islands
from pymoo_gpuaco.problems import QAP, TSP, MultiObjectiveTSP, OpenPath
from pymoo_gpuaco.problems.writing import write_whole
from pymoo_gpuaco.recorder import Recorder
from pymoo_gpuaco.runtime.clock import CLOCK

# ---- Classes and functions that a file may name. A class may be added if no malicious state can make it run code, read
# memory out of bounds, or connect to another process.

_OURS = (
    *(*ALL_ALGORITHMS.values(), GPU2PPLS, GPUMMASQAP, FrontIslands, Islands, Permutations),
    *(getattr(operators, name) for name in operators.__all__),
    *(ColonyOutput, ColonyTermination, FrontOutput, FrontTermination, LocalSearch),
    *(MultiObjectiveTSP, OpenPath, QAP, Recorder, TSP),
)
# Modules of pymoo whose classes a file may name.
_PYMOO: tuple[Any, ...] = (
    *(callback, duplicate, evaluator, individual, population, repair, termination, variable, lhs, rnd),
    *(traveling_salesman, collection, cv, default, fmin, ftol, max_eval, max_gen, max_time, robust, xtol),
    *(archive, sliding_window, column, display, multi, output, single),
)
# Names without modules: a class may move to another module, and its name in files does not change.
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
#: classes whose constructors validate their arguments
MADE = frozenset({Permutations, LocalSearch})
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
# NumPy's bit generators whose state has no index into a table; NumPy does not validate such an index.
_BIT_GENERATORS: dict[Any, Any] = {cls.__name__: cls for cls in (np.random.PCG64, np.random.PCG64DXSM)}
_SEEDS = ("entropy", "spawn_key", "n_children_spawned")

_PLAIN = (type(None), bool, int, float, str)
_SEQUENCES: dict[Any, str] = {list: "list", tuple: "tuple", set: "set"}


def _entry(table: dict[Any, Any], name: Any) -> Any:
    """Return the entry of a table. Raises ValueError for an unknown name."""
    if not isinstance(name, str) or name not in table:
        raise ValueError(f"the file names {name!r:.100}, which this version of pymoo_gpuaco does not know")
    return table[name]


def _class(name: Any, among: Collection[type]) -> Any:
    """Return the class of a name if it is in ``among``; otherwise raise ValueError."""
    cls = _entry(_CLASSES, name)
    if cls not in among:
        raise ValueError(f"the file is damaged: {name} has another kind of record")
    return cls


def _generator_record(generator: np.random.Generator) -> list[Any]:
    """Return the record of a generator. Raises TypeError for unsupported bit generators."""
    bits = generator.bit_generator
    seeds: Any = getattr(bits, "seed_seq", None)
    if type(bits) not in _BIT_GENERATORS.values() or not isinstance(seeds, np.random.SeedSequence | None):
        raise TypeError(
            f"a checkpoint requires the bit generator {' or '.join(_BIT_GENERATORS)}, got {type(bits).__name__}"
        )
    spawned = None if seeds is None else {name: getattr(seeds, name) for name in _SEEDS}
    return ["generator", type(bits).__name__, dict(bits.state), spawned]


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
    """Describe an object and all objects that it refers to; return the description and arrays by name.

    Raises TypeError for objects of unsupported classes.
    """
    writer = _Writer(thing)
    root = writer.value(thing)
    for thing in writer.things:  # it grows; iterative, so that deep nesting does not overflow the stack
        writer.records.append(writer.record(thing))
    needs = {name: name_of(one) for name, one in writer.given.items()}
    return {"needs": needs, "root": root, "objects": writer.records}, writer.arrays


class _Writer:
    def __init__(self, thing: Any) -> None:
        self.records: list[list[Any]] = []
        self.things: list[Any] = []  # by index; the references prevent that an id is used twice
        self.arrays: dict[str, Any] = {}
        self._places: dict[int, int] = {}  # index by id
        # objects of the user's classes; a history has copies of the problem
        parts = ((name, getattr(thing, name, None)) for name in ("problem", "callback"))
        self.given = {name: one for name, one in parts if type(one) not in (type(None), *NAME_OF_CLASS)}

    def value(self, thing: Any) -> Any:
        """Return the value in a record that refers to an object."""
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
        if isinstance(thing, Islands):  # a client of a scheduler runs code that the scheduler sends
            state = {**state, "client": None}
        return ["new", name, self.value(state), None if items is None else self._values(items)]


def objects_of(description: dict[str, Any], arrays: dict[str, Any], given: dict[str, Any]) -> Any:
    """Create the objects that ``records_of`` described; ``given`` are the objects of the user.

    It calls only known classes and functions: constructors for "made", ``__new__`` and ``__setstate__`` for the others.
    Raises ValueError for invalid records.
    """
    try:
        for name, cls in description["needs"].items():
            if name not in given:
                raise ValueError(f"the {name} has the class {cls!s:.100}: pass it, load(path, {name}=..)")
        reader = _Reader(description["objects"], arrays, given)
        root = reader.value(description["root"])
        for name, one in given.items():
            if hasattr(root, name):
                setattr(root, name, one)
        reader.check(getattr(root, "problem", None))
    except ValueError:
        raise
    except Exception as error:  # records of another program or of another version
        raise ValueError(
            f"the file is damaged or of another version of pymoo_gpuaco ({type(error).__name__}: {error})"
        ) from error
    return root


class _Reader:
    def __init__(self, records: list[Any], arrays: dict[str, Any], given: dict[str, Any]) -> None:
        self._records, self._arrays, self._given = records, arrays, given
        self._made: dict[int, Any] = {}

    def value(self, value: Any) -> Any:
        """Return a value of a record; objects are created at the first reference."""
        if type(value) in _PLAIN:
            return value
        (place,) = value
        if type(place) is not int or not 0 <= place < len(self._records):
            raise ValueError(f"the file is damaged: there is no object {place!r}")
        if place not in self._made:
            self._make(place, *self._records[place])
        return self._made[place]

    def check(self, problem: Any) -> None:
        """Validate the objects as a whole. Raises TypeError or ValueError for runs that compiled code could not use."""
        for made in self._made.values():
            if isinstance(made, PermutationAlgorithm):
                made.check_loaded()
            elif isinstance(made, individual.Individual) and problem is not None and np.size(made.X):
                checks.tours("X of an individual", made.X, problem.n_var)

    def _values(self, values: Any) -> list[Any]:
        return [self.value(value) for value in values]

    def _make(self, place: int, kind: str, *values: Any) -> None:
        """Create an object. One that can refer to itself is stored before its contents are read."""
        made: Any
        if kind in ("list", "set"):
            made = self._made[place] = [] if kind == "list" else set()
            (made.extend if kind == "list" else made.update)(self._values(values[0]))
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
        """Create an object that cannot refer to itself."""
        if kind == "tuple":
            return tuple(self._values(values[0]))
        if kind in ("array", "scalar"):
            array = self._arrays[values[0]]
            return array[()] if kind == "scalar" else array
        if kind == "known":
            return _entry(_CONSTANTS, values[0])
        if kind == "generator":
            return _generator(*values)
        if kind == "given":
            return self._given[values[0]]
        if kind == "made":
            cls = _class(values[0], MADE)
            return cls(**dict(zip(values[1], self._values(values[2]), strict=True)))
        raise ValueError(f"the file is damaged: there is no kind of record {kind!r:.50}")

    def _make_objects(self, place: int, name: Any, shape: Any, values: Any, state: Any) -> None:
        if math.prod(shape) != len(values):  # a few bytes must not allocate all memory
            raise ValueError("the file is damaged: the shape of an array of objects is wrong")
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


__all__ = ["Saver", "load", "save"]

_log = logging.getLogger("pymoo_gpuaco")

FORMAT = 6
_DESCRIPTION = "run.json"


def save(algorithm: Any, path: str | PathLike[str]) -> None:
    """Write an algorithm to a file, from which ``load`` makes one that continues exactly.

    An older file at ``path`` is replaced only when the new one is complete. It is a zip of plain arrays (``np.load``
    shows them) and a JSON description. A problem and a callback of your own classes are left out: pass them to
    ``load``.

    Raises OSError if the file cannot be written, and TypeError for any other object of your own classes: use ``dill``,
    as pymoo does.
    """
    buffer = io.BytesIO()
    description, arrays = records_of(algorithm)
    np.savez(buffer, **arrays)
    text = json.dumps(
        {"format": FORMAT, **description}, separators=(",", ":"), default=lambda one: one.tolist()
    )
    with zipfile.ZipFile(buffer, "a") as file:
        file.writestr(_DESCRIPTION, text)
    write_whole(path, buffer.getvalue())


class Saver(callback.Callback):
    """Callback that saves the run every ``seconds``; ``load`` continues it if the process was ended early.

    The file holds no callback. A state that cannot be written is a warning, and the run goes on; other errors are those
    of ``save``. The end of the run is not saved: save ``result.algorithm``.

    Parameters
    ----------
    path : file; each state replaces the one before.
    seconds : least time between two states, > 0. A state is written after a generation.
    callback : called after every generation, before the state is written; None: nothing.
    """

    def __init__(self, path: str | PathLike[str], seconds: float = 60.0, callback: Any = None) -> None:
        super().__init__()
        self.path, self.seconds = Path(path), checks.real("seconds", seconds, 0.0, open_low=True)
        self.callback = callback
        self._last = CLOCK.monotonic()

    def _update(self, algorithm: Any) -> None:
        if self.callback is not None:
            self.callback(algorithm)
        if CLOCK.monotonic() - self._last < self.seconds or algorithm.termination.has_terminated():
            return
        own, algorithm.callback = algorithm.callback, callback.Callback()
        algorithm.n_iter += 1  # pymoo counts a generation after its callback
        try:
            save(algorithm, self.path)
        except (OSError, MemoryError) as error:
            _log.warning(
                "pymoo_gpuaco: %s: the state could not be saved (%s); the run goes on", self.path, error
            )
        finally:
            algorithm.n_iter -= 1
            algorithm.callback = own
        self._last = CLOCK.monotonic()


def load(path: str | PathLike[str], *, problem: Any = None, callback: Any = None) -> Any:
    """Read an algorithm from a file of ``save`` or of the command line's ``--save``; no code in the file runs.

    ``problem`` and ``callback`` replace those in the file; they are needed if they are of your own classes.

    Raises FileNotFoundError for a missing file, and ValueError that names the file if it is damaged, of another kind or
    version, or needs ``problem`` or ``callback``.
    """
    data = Path(path).read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            if any(entry.compress_type != zipfile.ZIP_STORED for entry in file.infolist()):
                raise ValueError("a member is compressed")  # a few bytes could allocate all memory
            description = json.loads(file.read(_DESCRIPTION))
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files if name != _DESCRIPTION}
        version = description["format"]
    except Exception as error:  # zip, JSON and arrays raise many kinds of errors
        raise ValueError(
            f"{path}: the file is damaged, or not written by pymoo_gpuaco.checkpoint.save or --save "
            f"({type(error).__name__}: {error})"
        ) from error
    if version != FORMAT:
        raise ValueError(
            f"{path}: the file has version {version!s:.20} of the format; this pymoo_gpuaco reads {FORMAT}"
        )
    given = {"problem": problem, "callback": callback}
    try:
        return objects_of(description, arrays, {name: one for name, one in given.items() if one is not None})
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
