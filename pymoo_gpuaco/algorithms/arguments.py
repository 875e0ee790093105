"""Arguments of the algorithms: each is a field of a dataclass, with its default and its type.

The fields define constructor, ``setup``, ``repr`` and documentation. A subclass with another default repeats the field.
Every class that declares fields is decorated with ``@dataclass(kw_only=True, eq=False, repr=False)``.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from pymoo.core.callback import Callback
from pymoo.core.evaluator import Evaluator
from pymoo.core.variable import Variable, get
from pymoo.util.archive import Archive
from pymoo.util.display.display import Display
from pymoo.util.display.output import Output

from pymoo_gpuaco import checks

if TYPE_CHECKING:
    from typing_extensions import Self

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
CHANGED_BY_A_RUN = ("termination", "output", "display", "archive")
_NEVER_NONE = ("termination", "output", "display", "callback", "evaluator")


@dataclass(kw_only=True, eq=False, repr=False)
class Arguments(checks.KnownKeywords):
    """pymoo's own arguments, with its names and defaults; constructor and ``repr`` of classes with arguments."""

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

    def __new__(cls, *args: Any, **given: Any) -> Self:
        """Give a class without a decorator a constructor of its annotated attributes and of new defaults."""
        if "__dataclass_fields__" not in vars(cls):
            defaults = {field.name: field.type for field in fields(cls) if field.name in vars(cls)}
            cls.__annotations__ = {**defaults, **inspect.get_annotations(cls)}
            dataclass(kw_only=True, eq=False, repr=False)(cls)
        return super().__new__(cls, *args, **given)

    @classmethod
    def arguments(cls) -> tuple[str, ...]:
        """Return the names of the arguments without pymoo's own; ``setup`` and ``minimize`` take both as well."""
        names = (one.name for one in fields(cls) if one.init)
        return tuple(name for name in names if name not in PYMOO_ARGUMENTS)

    def __repr__(self) -> str:
        """Return the name of the class and the arguments that differ from their defaults."""
        shown = []
        for field in fields(self):
            name, usual, value = field.name, field.default, get(getattr(self, field.name))
            if name in PYMOO_ARGUMENTS:
                continue
            if name in ("sampling", "heuristic") and value is not None:
                shown.append(f"{name}=..")
            elif value is not usual and not (isinstance(value, type(usual)) and value == usual):
                shown.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


PYMOO_ARGUMENTS = tuple(field.name for field in fields(Arguments))


def as_parameters(algorithm: Any, kind: Callable[..., P], **others: Any) -> P:
    """Return ``kind(..)`` of the arguments that have the names of its parameters, and of ``others``."""
    names = set(checks.parameters(kind)).intersection(algorithm.arguments()).difference(others)
    return kind(**{name: get(getattr(algorithm, name)) for name in names}, **others)


def given_to_setup(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``setup`` that replace those of the constructor.

    For pymoo's own, None keeps the current value; for others (seed, n_ants, archive, ..) it is a value.
    """
    return {name: value for name, value in given.items() if value is not None or name not in _NEVER_NONE}


def check_flags(verbose: Any, progress: Any) -> None:
    """Raise TypeError for invalid flags of ``setup``."""
    if not isinstance(verbose, bool | None):
        raise TypeError(f"verbose must be True or False, got {verbose!r}: termination=.. takes a termination")
    checks.flag("progress", progress)


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
