"""A checksum over the arrays of an algorithm's state: a copy whose arrays have changed is refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from pymoo_gpuaco.runtime.state import State, check_seal, seal


def sealed(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state with a checksum, as `unsealed` expects it."""
    return {**state, "_seal": seal(_arrays(state))}


def unsealed(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state without its checksum. Raises ValueError where its arrays have changed."""
    own = dict(state)
    check_seal(own.pop("_seal"), _arrays(own))
    return own


def _arrays(state: dict[str, Any]) -> State:
    """What compiled code reads: the engine's state and the tours that the algorithm keeps."""
    own = {name: value for name, value in state.items() if type(value) is np.ndarray}  # no Population
    return {**own, **(state["_engine_state"] or {})}
