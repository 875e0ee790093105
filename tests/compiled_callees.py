"""Callees of compiled functions that tests call, exported with their types to a library that is not shipped."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np

from pymoo_gpuaco.backends.cpu import (
    construct,
    directed_search,
    local_search,
    moves,
    selection,
    trails,
    workspace,
)
from pymoo_gpuaco.backends.cpu.windows import moves as window_moves
from pymoo_gpuaco.backends.cpu.windows import trials
from pymoo_gpuaco.backends.cpu.windows.window import Units, Window
from pymoo_gpuaco.memetic import ab_cycles, assembly, block2, child, entropy, offspring
from pymoo_gpuaco.pareto import instance, nd_tree
from pymoo_gpuaco.problems.metrics import Graph
from pymoo_gpuaco.runtime import philox
from pymoo_gpuaco.runtime.compiled import (
    Callee,
    Compiled,
    Float64_1d,
    Float64_2d,
    Int32_1d,
    Int32_2d,
    Int64_1d,
    Int64_2d,
    UInt8_1d,
    UInt64,
    UInt64_1d,
    UInt64_2d,
    compiled,
)
from pymoo_gpuaco.runtime.intrinsics import atomic_add, atomic_load, await_count

EXPORTS: dict[Callee, Any] = {}  # ``conftest.py`` lets tests call them


def _export(callee: Any, returned: Any, *types: Any) -> None:
    source = callee.function
    copy = FunctionType(source.__code__, source.__globals__, source.__name__, None, source.__closure__)
    names = source.__code__.co_varnames[: len(types)]
    copy.__annotations__ = {**dict(zip(names, types, strict=True)), "return": returned}
    copy.__module__, copy.__qualname__ = __name__, f"{callee.__name__}_{len(EXPORTS)}"
    EXPORTS[callee] = globals()[copy.__qualname__] = Compiled(copy)


_Tour, _Search, _Cycles = workspace.Workspace, (Graph, workspace.Workspace), ab_cycles.Cycles
_export(workspace.load_tour, None, _Tour, Int32_1d)
_export(workspace.push_changed, None, _Tour, Int32_2d, bool)
_export(workspace.undo, None, _Tour)
_export(directed_search.cycle_stretches, None, _Tour, int, int, int)
_export(directed_search.swap_stretches, None, _Tour, int, int, int)
_export(moves.move_segment, None, _Tour, int, int, int, bool)
for search in (local_search.search, directed_search.search):
    _export(search, float, *_Search, int)
for kick in (local_search._kick, directed_search.kick):
    _export(kick, float, *_Search, int, UInt64_1d)
_export(window_moves.improve, float, Units, Window, int, int)
_export(window_moves.repair, float, Units, Window, int, bool)
_export(window_moves.push, None, Window, int)
_export(selection.roulette_over_row, int, Float64_1d, UInt8_1d, UInt64_1d)
_export(selection.race_among_candidates, int, Int32_1d, Float64_1d, UInt8_1d, UInt64_1d)
_export(
    selection.roulette_among_candidates, int, Int32_1d, Float64_1d, UInt8_1d, Int32_1d, Float64_1d, UInt64_1d
)
_export(
    selection.next_among_all, int, selection.Choice, int, selection.Tabu, construct.Rule, Int32_1d, UInt64_1d
)
_export(selection.clear, None, selection.Tabu)
_export(trails.blend_edge, None, trails.Trails, int, int, float, float, bool)
_export(ab_cycles.assign_regions, None, Int32_1d, _Cycles, int, int, ab_cycles.PairRegions)
_export(ab_cycles.sort_by_region, None, Int64_1d, int, ab_cycles.PairRegions, Int64_1d)
_export(
    assembly.recombine,
    float,
    *(Graph, float, Int32_1d, Int32_1d, Int32_1d, UInt64_1d, assembly.AssemblyWorkspace, UInt8_1d),
)
_export(block2.choose_block, int, int, _Cycles, Int32_1d, UInt64_1d, block2.Block)
_export(block2.find_contacts, None, Int32_1d, Int32_1d, _Cycles, int, ab_cycles.PairRegions, block2.Block)
_export(block2.reset_contacts, None, Int32_1d, _Cycles, int, block2.Block)
_export(child.breed, int, Graph, float, Int32_2d, Int32_1d, Int32_1d, _Cycles, Int64_1d, int, child.Child)
_export(child.cycle_gain, int, Graph, float, _Cycles, int)
_export(entropy.frequency, int, entropy.Frequencies, int, int)
_export(offspring._advance, None, Int64_1d, int, int, int)
_export(
    offspring._combine_regions,
    int,
    *(Graph, float, Int32_2d, Int32_1d, Int32_1d, _Cycles, ab_cycles.PairRegions, child.Child),
)
_export(offspring._entropy_lost, float, entropy.Frequencies, Int32_2d, Int32_2d, int)
_export(
    offspring._find_difference,
    None,
    *(offspring.PopulationArrays, Int64_1d, int, offspring.Differences, int),
    *(offspring.OffspringWorkspace, UInt64_2d, bool),
)
_export(instance.cost, float, instance.Costs, int, int, int)
_export(nd_tree.tree_covers, bool, nd_tree.NDTree, Float64_2d, Float64_1d, Int32_1d, Float64_1d)
_export(philox.next_below, int, UInt64_1d, int)
_export(philox.next_uniform, float, UInt64_1d)
_export(philox.next_word, UInt64, UInt64_1d)


@compiled
def read_trail(t: trails.Trails, i: int, j: int) -> float:
    return np.float64(trails.read_trail(t, i, j))


@compiled
def write_trail(t: trails.Trails, i: int, j: int, value: float) -> None:
    trails.write_trail(t, i, j, np.float32(value))


@compiled
def kick_window(units: Units, w: Window, m: int, around: int, longest: int, rng: UInt64_1d) -> float:
    """Return the gain, or NaN if no kick fits."""
    gain, is_made = trials._kick(units, w, m, around, longest, rng)
    return gain if is_made else np.nan


@compiled
def philox4x32(words: UInt64_1d) -> None:
    """Replace the first four of six words, the counter and the key, by the result."""
    words[0], words[1], words[2], words[3] = philox.philox4x32(
        words[0], words[1], words[2], words[3], words[4], words[5]
    )


@compiled
def begin_stream(state: UInt64_1d, key: UInt64, ant: int, stream: int) -> None:
    philox.begin_stream(state, key, ant, stream)


@compiled
def quotient(a: int, b: int) -> int:
    return a // b


@compiled
def take_and_wait(counts: Int64_1d, seen: Int64_2d, thread: int, rounds: int) -> None:
    """Count up in every round, wait for the other threads, and store what this thread then reads."""
    threads = seen.shape[0]
    for r in range(rounds):
        atomic_add(counts, r, 1)
        await_count(counts, r, threads)
        seen[thread, r] = atomic_load(counts, r)


def _kick(*args: Any) -> tuple[float, bool]:
    gain = kick_window(*args)
    return gain, not np.isnan(gain)


def _philox4x32(*args: int) -> tuple[int, ...]:
    words = np.array(args, np.uint64)
    philox4x32(words)
    return tuple(words[:4].tolist())


EXPORTS |= {trails.read_trail: read_trail, trails.write_trail: write_trail}
EXPORTS |= {trials._kick: _kick, philox.philox4x32: _philox4x32}


def new_stream(key: int, ant: int, stream: int) -> Any:
    """Return the state of a generator, as compiled functions begin it."""
    state = np.zeros(philox.STATE, np.uint64)
    begin_stream(state, key, ant, stream)
    return state
