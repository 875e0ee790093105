"""``pymoo-gpuaco compile``: what runs would compile, compiled now, for images and machines that start afresh."""

from __future__ import annotations

import argparse
import time

import numpy as np
from pymoo.optimize import minimize

from pymoo_gpuaco.algorithms import ALL_ALGORITHMS, GPU2PPLS, GPUMemetic
from pymoo_gpuaco.candidates.bound import compile_proof
from pymoo_gpuaco.memetic.parameters import WHOLE_UP_TO
from pymoo_gpuaco.memetic.penalties import MOST_CITIES
from pymoo_gpuaco.memetic.warm_up import warm_up_host
from pymoo_gpuaco.problems.multi_objective import MultiObjectiveTSP
from pymoo_gpuaco.problems.tsp import TSP
from pymoo_gpuaco.runtime import compiling


def compile_all(arguments: argparse.Namespace) -> int:
    """Make short runs of the default path and of the algorithms named, so that their code is kept on the disk."""
    began = time.perf_counter()
    before = compiling.so_far()
    with compiling.announced(print):
        # whole tours, windows of one tour, and windows without penalties
        for n in (1000, WHOLE_UP_TO + 1000, MOST_CITIES + 1000):
            _run(GPUMemetic(backend=arguments.backend, device=arguments.device), _square(n))
        _run(GPUMemetic(backend=arguments.backend, device=arguments.device), TSP(matrix=_square(60).D))
        warm_up_host(penalised=True, evolves=True)  # as on machines of more cores than this one
        for name in arguments.algorithm:
            if name == GPU2PPLS.__name__:
                _compile_fronts(arguments)
                continue
            make = ALL_ALGORITHMS[name]
            _run(make(backend=arguments.backend, device=arguments.device), _square(200))
    took = time.perf_counter() - began
    found = "" if compiling.so_far() > before else "everything was compiled already; "
    print(f"{found}{took:.1f} s in all")
    return 0


def _compile_fronts(arguments: argparse.Namespace) -> None:
    """Of two objectives, and of more: until sums have been solved, and tours looked at and assembled."""
    for k in (2, 3):
        problem = MultiObjectiveTSP([_square(10, seed) for seed in range(k)])
        algorithm = GPU2PPLS(n_weights=2 * k, backend=arguments.backend, device=arguments.device)
        minimize(problem, algorithm, ("n_gen", 12), seed=1)


def _run(algorithm: object, problem: TSP) -> None:
    compile_proof(minimize(problem, algorithm, ("n_gen", 2), seed=1).algorithm.instance)


def _square(n: int, seed: int = 0) -> TSP:
    return TSP(np.random.default_rng(seed).random((n, 2)))
