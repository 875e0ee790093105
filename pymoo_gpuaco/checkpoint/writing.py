"""Objects as a flat list of records, each named by its place in it, so that what is shared stays shared.

A value within a record is None, a bool, a number, a string, or [i] for the object i. The kinds of records:

``["list" | "tuple" | "set" | "frozenset", values]``, ``["dict", [[key, value], ..]]``, ``["bytes", array]``
``["array", array]``, ``["scalar", array]`` of numpy, and ``["objects", class, shape, values, state]``: a Population
``["generator", bit generator, its state, state of its seed sequence or null]``
``["known", name]``: a function or type; ``["new", class, state, items]``: an object, whose class takes the state back
``["named", class, values]``: a named tuple; ``["fields", class, [[name, value], ..]]``: a dataclass
``["pickle", number, class]``: anything else, in the pickle beside the records
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np

from pymoo_gpuaco.checkpoint import known
from pymoo_gpuaco.checkpoint.container import Tree
from pymoo_gpuaco.islands import Islands

_PLAIN = (type(None), bool, int, float, str)
_SEQUENCES: dict[Any, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}


def tree_of(thing: Any) -> Tree:
    """Describe an object and all that it refers to. Raises what pickle raises for what it cannot keep."""
    return _Writer().write(thing)


class _Writer:
    def __init__(self) -> None:
        self.tree = Tree()
        self._places: dict[int, int] = {}  # by id
        self._things: list[Any] = []  # by place; they live until all is written, so that no id comes twice
        self._pickled: list[Any] = []

    def write(self, thing: Any) -> Tree:
        """Write everything, what pickled objects refer to included."""
        self.tree.root = self.value(thing)
        stream = io.BytesIO()
        # one pickler for all of them: what they share stays shared
        pickler = _Pickler(stream, self)
        done = 0
        self._describe_all()
        while done < len(self._pickled):
            pickler.dump(self._pickled[done])
            done += 1
            self._describe_all()
        self.tree.pickle = stream.getvalue()
        self.tree.pickled = sorted({record[2] for record in self.tree.records if record[0] == "pickle"})
        return self.tree

    def value(self, thing: Any) -> Any:
        """Return a value as it stands in a record."""
        if type(thing) in _PLAIN:
            return thing
        if id(thing) not in self._places:
            self._places[id(thing)] = len(self._things)
            self._things.append(thing)
        return [self._places[id(thing)]]

    def place(self, thing: Any) -> int:
        """Return the number of an object."""
        number: int = self.value(thing)[0]
        return number

    def _describe_all(self) -> None:
        # one after the other, not one within the other: a list in a list in a list is no matter of Python's stack
        while len(self.tree.records) < len(self._things):
            self.tree.records.append(self._record(self._things[len(self.tree.records)]))

    def _values(self, things: Any) -> list[Any]:
        return [self.value(thing) for thing in things]

    def _pairs(self, pairs: Any) -> list[list[Any]]:
        return [[self.value(key), self.value(thing)] for key, thing in pairs]

    def _array(self, array: Any) -> str:
        name = f"array_{len(self.tree.arrays) + 1}"
        self.tree.arrays[name] = array
        return name

    def _record(self, thing: Any) -> list[Any]:
        kind = type(thing)
        if kind in _SEQUENCES:
            return [_SEQUENCES[kind], self._values(thing)]
        if kind is dict:
            return ["dict", self._pairs(thing.items())]
        if kind is bytes:
            return ["bytes", self._array(np.frombuffer(thing, np.uint8))]
        if kind is np.ndarray and not thing.dtype.hasobject:
            return ["array", self._array(thing)]
        if isinstance(thing, np.generic) and not thing.dtype.hasobject and kind.__module__ == "numpy":
            return ["scalar", self._array(np.array(thing))]
        if id(thing) in known.NAME_OF_CONSTANT:
            return ["known", known.NAME_OF_CONSTANT[id(thing)]]
        if kind in known.NAME_OF_CLASS:
            return self._object(thing, known.NAME_OF_CLASS[kind])
        if kind is np.random.Generator:
            told = known.generator_record(thing)
            if told is not None:
                return ["generator", *told]
        return self._user_object(thing)

    def _object(self, thing: Any, name: str) -> list[Any]:
        kind = type(thing)
        if kind in known.ARRAYS_OF_OBJECTS:
            state = getattr(thing, "__dict__", None)
            return ["objects", name, list(thing.shape), self._values(thing.reshape(-1)), self.value(state)]
        if kind in known.FIELDS:
            return [
                "fields",
                name,
                [[field, self.value(getattr(thing, field))] for field in known.FIELDS[kind]],
            ]
        if isinstance(thing, tuple):
            return ["named", name, self._values(thing)]
        made, arguments, state, items, _ = (*thing.__reduce_ex__(2), None, None, None)[:5]
        if getattr(made, "__name__", "") != "__newobj__" or arguments != (kind,):
            raise TypeError(f"{name} does not tell its state as this format needs it")
        if isinstance(thing, Islands):
            state = known.islands_to_file(state)
        return ["new", name, self.value(state), None if items is None else self._values(items)]

    def _user_object(self, thing: Any) -> list[Any]:
        self._pickled.append(thing)
        named = thing if hasattr(thing, "__qualname__") else type(thing)
        return ["pickle", len(self._pickled) - 1, f"{named.__module__}.{named.__qualname__}"]


class _Pickler(pickle.Pickler):
    """Pickles objects of the user; what they refer to and a record can hold is a record."""

    def __init__(self, stream: io.BytesIO, writer: _Writer) -> None:
        super().__init__(stream, protocol=4)
        self._writer = writer

    def persistent_id(self, thing: Any) -> int | None:
        """Return the place of an object that has a record, or None."""
        kind = type(thing)
        if kind in known.REFERABLE or (
            kind is np.random.Generator and known.generator_record(thing) is not None
        ):
            return self._writer.place(thing)
        return None
