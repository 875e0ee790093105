"""Pymoo problems as instances with candidate lists, for tests of engines."""

from __future__ import annotations

from typing import Any

from pymoo.core.problem import Problem

from pymoo_gpuaco.candidates import lists
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.pareto import instance
from pymoo_gpuaco.problems import MultiObjectiveTSP, as_instance


def listed_instance(problem: Problem, k: int, kind: str = "nearest", **given: Any) -> ListedInstance:
    """Return a problem with k candidates per city, see ``with_lists``."""
    return lists.with_lists(as_instance(problem), k, kind, **given)


def front_instance(problem: MultiObjectiveTSP, k: int) -> instance.FrontInstance:
    """Return the objectives of a problem with k candidates each."""
    return instance.front_instance([part.instance for part in problem.parts], problem.names, k)
