"""Operators are called every generation with the same problem: its arrays are built once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from pymoo.core.problem import Problem

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import listed_instance

T = TypeVar("T")


class KeepsInstance:
    """Remembers the arrays of the last problem and an engine built on them; copies and pickles leave them out."""

    _last: tuple[Problem, int, ListedInstance] | None = None
    _built: tuple[Hashable, Any] | None = None

    def _instance(self, problem: Problem, k: int) -> ListedInstance:
        if self._last is None or self._last[0] is not problem or self._last[1] != k:
            self._last = (problem, k, listed_instance(problem, k))
            self._built = None
        return self._last[2]

    def _engine(self, arguments: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` returned for the last instance and these arguments, or returns now."""
        if self._built is None or self._built[0] != arguments:
            self._built = (arguments, make())
        engine: T = self._built[1]
        return engine

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_last", "_built")}
