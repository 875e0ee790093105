"""The classes and functions that a file may name, random numbers, and islands.

A class may be added if no state that somebody else has written can make it run code, read memory that is not its own,
or trust another process.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection
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
from pymoo_gpuaco.algorithms.base import TourAlgorithm, Tours
from pymoo_gpuaco.algorithms.display import ColonyOutput
from pymoo_gpuaco.algorithms.front_run import FrontOutput, FrontTermination
from pymoo_gpuaco.algorithms.termination import ColonyTermination
from pymoo_gpuaco.colony.parameters import LocalSearch
from pymoo_gpuaco.islands import FrontIslands, Islands, IslandsOutput
from pymoo_gpuaco.islands.archipelago import is_pickled_island
from pymoo_gpuaco.islands.cluster import Connection
from pymoo_gpuaco.islands.island import RoundTermination
from pymoo_gpuaco.problems import TSP, MultiObjectiveTSP, OpenPath
from pymoo_gpuaco.recorder import Recorder

_OURS = (
    *ALL_ALGORITHMS.values(),
    *(getattr(operators, name) for name in operators.__all__),
    ColonyOutput,
    ColonyTermination,
    FrontIslands,
    FrontOutput,
    FrontTermination,
    GPU2PPLS,
    Islands,
    IslandsOutput,
    LocalSearch,
    MultiObjectiveTSP,
    OpenPath,
    Recorder,
    RoundTermination,
    TSP,
    Tours,
)
# Modules of pymoo whose classes are known.
_PYMOO: tuple[Any, ...] = (
    *(callback, duplicate, evaluator, individual, population, repair, termination, variable, lhs, rnd),
    *(traveling_salesman, collection, cv, default, fmin, ftol, max_eval, max_gen, max_time, robust, xtol),
    *(archive, sliding_window, column, display, multi, output, single),
)

# Without the modules: those may be moved, and the name stays.
_CLASSES: dict[str, type] = {
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

_CONSTANTS: dict[str, Any] = {
    "bool": bool,
    "float": float,
    "int": int,
    "object": object,
    "numpy.sum": np.sum,
    "pymoo.ElementwiseEvaluationFunction": problem.ElementwiseEvaluationFunction,
    "pymoo.default_attr": duplicate.default_attr,
}
NAME_OF_CONSTANT = {id(constant): name for name, constant in _CONSTANTS.items()}


def class_named(name: Any, among: Collection[type]) -> Any:
    """Return a class of a kind. Raises ValueError for the name of any other."""
    cls = _CLASSES.get(name) if isinstance(name, str) else None
    if cls is None or cls not in among:
        raise ValueError(
            f"it holds an object of {name!r:.100}, which this version of pymoo_gpuaco does not know"
        )
    return cls


def constant(name: Any) -> Any:
    """Return a function or type. Raises ValueError for the name of any other."""
    if not isinstance(name, str) or name not in _CONSTANTS:
        raise ValueError(f"it names {name!r:.100}, which this version of pymoo_gpuaco does not know")
    return _CONSTANTS[name]


# ---- Random numbers. Of numpy's bit generators those whose state is numbers alone: the others hold an index into a
# table, and numpy does not check it.

_BIT_GENERATORS: dict[str, Any] = {cls.__name__: cls for cls in (np.random.PCG64, np.random.PCG64DXSM)}
_SEEDS = ("entropy", "spawn_key", "n_children_spawned")


def generator_record(generator: np.random.Generator) -> tuple[str, Any, Any]:
    """Return the record of a generator, without its kind. Raises TypeError for other bit generators."""
    bits = generator.bit_generator
    seeds: Any = getattr(bits, "seed_seq", None)
    if type(bits) not in _BIT_GENERATORS.values() or not isinstance(seeds, np.random.SeedSequence | None):
        raise TypeError(
            f"a checkpoint holds random numbers of {', '.join(_BIT_GENERATORS)}, got {type(bits).__name__}"
        )
    spawned = None if seeds is None else {name: _numbers(getattr(seeds, name)) for name in _SEEDS}
    return type(bits).__name__, dict(bits.state), spawned


def _numbers(given: Any) -> Any:
    """Return numbers as JSON holds them."""
    if given is None:
        return None
    return int(given) if np.ndim(given) == 0 else [int(number) for number in given]


def generator(name: str, state: dict[str, Any], seeds: dict[str, Any] | None) -> np.random.Generator:
    """Return the generator of a record."""
    if name not in _BIT_GENERATORS:
        raise ValueError(f"it names the random numbers {name!r:.100}, which are not known here")
    seeds = seeds or dict.fromkeys(_SEEDS, 0)
    made = _BIT_GENERATORS[name](np.random.SeedSequence(**{key: seeds[key] for key in _SEEDS}))
    made.state = state
    return np.random.Generator(made)


# ---- Islands hold their colonies as pickles that workers read, and the address of a scheduler that they will trust. In
# a file the colonies are objects like all others, and the address must be set again.

_COLONIES = "colonies of the islands"


def islands_to_file(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of ``Islands`` as it is kept in a file."""
    arrays = state["_engine_state"] or {}
    colonies = {
        name: pickle.loads(array.tobytes()) for name, array in arrays.items() if is_pickled_island(name)
    }
    own = {name: array for name, array in arrays.items() if name not in colonies}
    client = state["client"]
    address = client.address if isinstance(client, Connection) else client
    return {**state, _COLONIES: colonies, "_engine_state": own or None, "client": address}


def islands_from_file(stored: dict[str, Any]) -> dict[str, Any]:
    """Return the state that ``islands_to_file`` was given. Raises ValueError for anything else."""
    state = dict(stored)
    colonies, arrays = state.pop(_COLONIES), dict(state["_engine_state"] or {})
    if any(is_pickled_island(name) for name in arrays):
        raise ValueError("it is damaged: an island is not as it is kept in a file")
    for name, colony in colonies.items():
        if not isinstance(colony, TourAlgorithm):
            raise ValueError("it is damaged: an island has no colony")
        arrays[name] = np.frombuffer(pickle.dumps(colony), np.uint8)
    state["_engine_state"] = arrays or None
    if state["client"] is not None:
        state["client"] = Connection(str(state["client"]), trusted=False)
    return state
