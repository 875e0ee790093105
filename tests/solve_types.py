"""Types that `solve` returns, for type checkers: ``make check`` runs mypy and basedpyright over this file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import assert_type

    from pymoo_gpuaco import QAP, TSP, Front, MultiObjectiveTSP, OpenPath, Solution, solve
    from pymoo_gpuaco.problems import Assignment

    def one_objective(
        problem: TSP, path: OpenPath, coords: NDArray[np.float64], file: os.PathLike[str]
    ) -> None:
        assert_type(solve(problem), Solution)
        assert_type(solve(path, seconds=1), Solution)
        assert_type(solve(coords), Solution)
        assert_type(solve([[0, 0], [1, 0], [0, 1]]), Solution)
        assert_type(solve("pcb442", verbose=True), Solution)
        assert_type(solve(file), Solution)
        assert_type(solve(problem).length, float)

    def several_objectives(problem: MultiObjectiveTSP) -> None:
        assert_type(solve(problem), Front)
        assert_type(solve(problem, seconds=2).lengths, NDArray[np.float64])

    def placements(problem: QAP) -> None:
        assert_type(solve(problem), Assignment)
        assert_type(solve(problem, seconds=2).cost, float)

    def unknown(graph: Any) -> None:
        assert_type(solve(graph), Any)
