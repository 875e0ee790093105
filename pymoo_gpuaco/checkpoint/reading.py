"""Objects from records; see ``writing``.

Called are classes and functions of ``known`` alone: the constructors of named tuples and of dataclasses, ``__new__`` of
the others, and their ``__setstate__``. The pickle is looked at only where that is allowed.
"""

from __future__ import annotations

import io
import math
import pickle
from typing import Any

import numpy as np

from pymoo_gpuaco.checkpoint import known
from pymoo_gpuaco.checkpoint.container import Tree
from pymoo_gpuaco.islands import Islands

_PLAIN = (type(None), bool, int, float, str)
_NOT_YET = object()


class NeedsPickle(Exception):
    """Objects of classes of the user's own are in the file; the text names them."""


def tree_read(tree: Tree, allow_pickle: bool) -> Any:
    """Make the objects. Raises NeedsPickle, before anything is made, and ValueError for records that make none."""
    try:
        pickled = {str(record[2]) for record in tree.records if record[0] == "pickle"}
        if pickled and not allow_pickle:
            raise NeedsPickle(_printable(", ".join(sorted(pickled))))
        return _Reader(tree, allow_pickle).read()
    except (NeedsPickle, ValueError):
        raise
    except Exception as error:  # sealed records of another program, or of another version of this one
        raise ValueError(
            f"it is damaged or no run of this version of pymoo_gpuaco ({type(error).__name__}: {error})"
        ) from error


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text[:500])


class _Reader:
    """All objects are made empty first, then filled, then given their states: they may refer to each other."""

    def __init__(self, tree: Tree, allow_pickle: bool) -> None:
        self._tree = tree
        self._allow_pickle = allow_pickle
        self._made: list[Any] = [_NOT_YET] * len(tree.records)

    def read(self) -> Any:
        for place, record in enumerate(self._tree.records):
            self._made[place] = self._empty(*record)
        self._unpickle()
        for place, record in enumerate(self._tree.records):
            self._fill(self._object(place), *record)
        for place, record in reversed(list(enumerate(self._tree.records))):  # what is within comes first
            self._give_state(self._made[place], *record)
        return self._value(self._tree.root)

    def _value(self, value: Any) -> Any:
        if type(value) in _PLAIN:
            return value
        (place,) = value
        return self._object(place)

    def _values(self, values: Any) -> list[Any]:
        return [self._value(value) for value in values]

    def _object(self, place: Any) -> Any:
        if type(place) is not int or not 0 <= place < len(self._made):
            raise ValueError(f"it is damaged: there is no object {place!r}")
        if self._made[place] is _NOT_YET:
            self._made[place] = self._whole(*self._tree.records[place])
        return self._made[place]

    def _empty(self, kind: str, *told: Any) -> Any:
        """Make an object that can be filled later, or that refers to no other."""
        if kind in ("list", "dict", "set"):
            return {"list": list, "dict": dict, "set": set}[kind]()
        if kind == "array":
            return self._tree.arrays[told[0]]
        if kind == "scalar":
            return self._tree.arrays[told[0]][()]
        if kind == "bytes":
            return self._tree.arrays[told[0]].tobytes()
        if kind == "known":
            return known.constant(told[0])
        if kind == "generator":
            return known.generator(*told)
        if kind == "objects":
            if math.prod(told[1]) != len(told[2]):  # a few bytes must not ask for all memory
                raise ValueError("it is damaged: an array of objects is not as large as it says")
            return np.empty(tuple(told[1]), object).view(known.class_named(told[0], known.ARRAYS_OF_OBJECTS))
        if kind == "new":
            cls = known.class_named(told[0], known.REFERABLE)
            return cls.__new__(cls)
        return _NOT_YET

    def _whole(self, kind: str, *told: Any) -> Any:
        """Make an object that cannot change."""
        if kind in ("tuple", "frozenset"):
            return {"tuple": tuple, "frozenset": frozenset}[kind](self._values(told[0]))
        if kind == "named":
            return known.class_named(told[0], known.NAMED_TUPLES)(*self._values(told[1]))
        if kind == "fields":
            cls = known.class_named(told[0], known.FIELDS)
            return cls(**{name: self._value(value) for name, value in told[1]})
        raise ValueError(f"it is damaged: there are no objects of the kind {kind!r:.50}")

    def _unpickle(self) -> None:
        places = [place for place, record in enumerate(self._tree.records) if record[0] == "pickle"]
        if not places:
            return
        names = ", ".join(sorted({str(self._tree.records[place][2]) for place in places}))
        try:
            unpickler = _Unpickler(self._tree.pickle, self._made)
            things = [unpickler.load() for _ in places]
        except Exception as error:  # of the user's own classes, or for want of them
            raise ValueError(
                f"its objects of {_printable(names)} cannot be read here ({type(error).__name__}: {error})"
            ) from error
        for place in places:
            self._made[place] = things[self._tree.records[place][1]]

    def _fill(self, made: Any, kind: str, *told: Any) -> None:
        if kind == "list":
            made.extend(self._values(told[0]))
        elif kind == "set":
            made.update(self._values(told[0]))
        elif kind == "dict":
            made.update((self._value(key), self._value(value)) for key, value in told[0])
        elif kind == "objects":
            flat = made.reshape(-1)
            for index, value in enumerate(told[2]):
                flat[index] = self._value(value)
        elif kind == "new" and told[2] is not None:
            list.extend(made, self._values(told[2]))

    def _give_state(self, made: Any, kind: str, *told: Any) -> None:
        if kind == "objects" and told[3] is not None:
            made.__dict__.update(self._value(told[3]))
        if kind != "new":
            return
        state = self._value(told[1])
        if isinstance(made, Islands):
            state = known.islands_from_file(state, self._allow_pickle)
        if hasattr(type(made), "__setstate__"):
            made.__setstate__(state)
        elif state is not None:
            made.__dict__.update(state)


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, made: list[Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._made = made

    def persistent_load(self, place: int) -> Any:
        """Return the object of a record."""
        return self._made[place]
