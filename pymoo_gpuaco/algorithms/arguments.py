"""Arguments of the algorithms: each is a field of a dataclass, with its default and its type.

The fields define constructor, ``setup``, ``repr`` and documentation. A subclass with another default repeats the field.
Every class that declares fields is decorated with ``@dataclass(kw_only=True, eq=False, repr=False)``.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import FunctionType
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from pymoo.core.algorithm import Algorithm
from pymoo.core.callback import Callback
from pymoo.core.evaluator import Evaluator
from pymoo.core.termination import Termination
from pymoo.core.variable import Variable, get
from pymoo.util.archive import Archive
from pymoo.util.display.display import Display
from pymoo.util.display.output import Output

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.display import ColonyOutput
from pymoo_gpuaco.algorithms.termination import ColonyTermination, check_termination

# A ``Variable`` is a value that pymoo tunes: ``Real``, ``Integer``, ``Choice`` or ``Binary``.
Number: TypeAlias = float | np.floating[Any] | np.integer[Any] | Variable
Count: TypeAlias = int | np.integer[Any] | Variable
Word: TypeAlias = str | Variable
Flag: TypeAlias = bool | Variable
P = TypeVar("P")

# Names of arguments in pymoo and in other packages for ant colonies, and their names here.
_ALIASES = {
    "pop_size": "n_ants",
    "population_size": "n_ants",
    "ants": "n_ants",
    "evaporation": "rho",
    "decay": "rho",
    "n_neighbors": "candidate_list_size",
    "n_neighbours": "candidate_list_size",
    "k": "candidate_list_size",
    "n_restarts": "n_climbers",
    "random_state": "seed",
    "callbacks": "callback",
    "logger": "output",
}
# Types of pymoo's own arguments.
_KINDS = {
    "output": Output,
    "display": Display,
    "callback": Callback,
    "archive": Archive,
    "evaluator": Evaluator,
}
# Arguments that a run changes: every run begins with the given objects, in their state before the last run.
_CHANGED_BY_A_RUN = ("termination", "output", "display", "archive")


@dataclass(kw_only=True, eq=False, repr=False)
class Arguments(checks.KnownKeywords, Algorithm):
    """pymoo's own arguments, with its names and defaults; validation and ``repr`` of all arguments."""

    termination: Any = None
    output: Any = None
    display: Any = None
    callback: Any = None
    archive: Any = None
    return_least_infeasible: bool = False
    save_history: bool = False
    verbose: bool = False
    seed: Any = None
    evaluator: Any = None

    _aliases: ClassVar[Mapping[str, str]] = _ALIASES

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Raise TypeError for a method with the name of a parameter: it would replace the default."""
        super().__init_subclass__(**kwargs)
        for base in cls.__mro__[1:]:
            for name in vars(base).get("__dataclass_fields__", ()):
                if isinstance(vars(cls).get(name), (FunctionType, property, classmethod, staticmethod)):
                    raise TypeError(
                        f"{cls.__name__}.{name} is a method with the name of the parameter {name!r} of "
                        f"{base.__name__}: give the method another name"
                    )

    def __post_init__(self) -> None:
        """Pass pymoo's own arguments to pymoo."""
        if self.output is None:
            self.output = self._usual_output()
        own = {name: getattr(self, name) for name in PYMOO_ARGUMENTS}
        check_kinds(own)
        super().__init__(**own)
        #: the arguments that a run changes, in their state before it
        self._given: dict[str, Any] = {name: own[name] for name in _CHANGED_BY_A_RUN}

    @classmethod
    def arguments(cls) -> tuple[str, ...]:
        """Return the names of the arguments without pymoo's own; ``setup`` and ``minimize`` take both as well."""
        return tuple(field.name for field in fields(cls) if field.name not in PYMOO_ARGUMENTS)

    def _as_parameters(self, kind: Callable[..., P], **others: Any) -> P:
        """Return ``kind(..)`` of the arguments that have the names of its parameters, and of ``others``."""
        names = set(checks.parameters(kind)).intersection(self.arguments()).difference(others)
        return kind(**{name: get(getattr(self, name)) for name in names}, **others)

    def __repr__(self) -> str:
        """Return the name of the class and the arguments that differ from their defaults."""
        shown = []
        for field in fields(self):
            name, usual, value = field.name, field.default, get(getattr(self, field.name))
            if name in PYMOO_ARGUMENTS:
                continue
            if name == "sampling" and value is not None:
                shown.append("sampling=..")
            elif value is not usual and not (isinstance(value, type(usual)) and value == usual):
                shown.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def _usual_termination(self) -> Termination:
        """Return the default termination."""
        return ColonyTermination(proven=True)

    def _usual_output(self) -> Output:
        """Return the default output."""
        return ColonyOutput()

    def _begin_again(self, given: dict[str, Any]) -> None:
        """Reset the object to its last arguments and those ``given``."""
        before = {} if self.problem is None else self._given
        data = self.data
        self.__dict__.update({**before, **given})
        self.__post_init__()
        self.data: Any = data  # the user's
        check_termination(self.termination)
        # as in pymoo, the run uses the given object itself; the next run begins with a copy from before this one
        self._given["termination"] = copy.deepcopy(self.termination)
        if self.termination is None:
            self.termination = self._usual_termination()


PYMOO_ARGUMENTS = tuple(field.name for field in fields(Arguments))


def check_kinds(given: Mapping[str, Any]) -> None:
    """Raise TypeError for pymoo's own arguments of a wrong type; None is always allowed."""
    for name, kind in _KINDS.items():
        value = given.get(name)
        fits = callable(value) if kind is Callback else isinstance(value, kind)
        is_class = isinstance(value, type)
        if value is None or (fits and not is_class):
            continue
        allowed = "a pymoo Callback or a function" if kind is Callback else f"a pymoo {kind.__name__}"
        hint = f": give an object, {value.__name__}(..)" if is_class else ""
        raise TypeError(f"{name} must be {allowed}, got {value!r}{hint}")


def check_sampling(sampling: Any) -> None:
    """Raise TypeError or ValueError for an invalid ``sampling``."""
    if isinstance(sampling, (list, tuple)):
        try:
            np.array(sampling)
        except ValueError as error:
            raise ValueError(f"sampling must hold tours of equal length: {error}") from error
    elif not (sampling is None or isinstance(sampling, np.ndarray) or callable(sampling)):
        hint = "; read_tour reads a file" if isinstance(sampling, (str, os.PathLike)) else ""
        raise TypeError(
            "sampling must be a pymoo Sampling, an (m, n) array of permutations or a Population, "
            f"got {sampling!r}{hint}"
        )


def check_seed(seed: Any) -> None:
    """Raise TypeError or ValueError for an invalid ``seed``."""
    try:
        np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"seed must be an integer >= 0, a numpy Generator or None, got {seed!r}: {error}"
        ) from error
