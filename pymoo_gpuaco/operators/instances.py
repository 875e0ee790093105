"""Operators are called every generation with the same problem: its arrays are built once."""

from __future__ import annotations

from typing import Any

from pymoo.core.problem import Problem

from pymoo_gpuaco.problems.instance import Instance, as_instance


class KeepsInstance:
    """Remembers the arrays of the last problem; copies and pickles leave them out."""

    _last: tuple[Problem, int, Instance] | None = None

    def _instance(self, problem: Problem, k: int) -> Instance:
        if self._last is None or self._last[0] is not problem or self._last[1] != k:
            self._last = (problem, k, as_instance(problem, k))
        return self._last[2]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_last"}
