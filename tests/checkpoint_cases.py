"""Runs that are kept in files, for the tests of what such a file holds and of what it cannot do."""

from pymoo_gpuaco import (
    GPUMMAS,
    GPUMemetic,
    Islands,
    checkpoint,
)
from tests.algorithm_cases import (
    BACKEND,
    cities,
)


def begun(problem=None, termination=("n_gen", 5), generations=2, seed=3, **arguments):
    """A run of some generations that has not ended."""
    problem = problem or cities(16)
    if getattr(problem, "constraints", None) is not None:  # which no colony keeps
        run = GPUMemetic(**{"population_size": 6, "backend": BACKEND, **arguments})
    else:
        run = GPUMMAS(**{"n_ants": 6, "backend": BACKEND, **arguments})
    algorithm = run.setup(problem, termination=termination, seed=seed)
    for _ in range(generations):
        algorithm.next()
    return algorithm


def kept(algorithm, path, **how):
    """The algorithm as it comes back from a file."""
    checkpoint.save(algorithm, path)
    return checkpoint.load(path, **how)


def islands():
    """Islands of a cluster between two rounds, as a run that was not started in this process."""
    run = Islands(GPUMMAS(n_ants=2, backend="cpu"), 2, deterministic=True, client="tcp://127.0.0.1:1")
    run.problem = cities(16)
    return run
