"""Animation of a run."""

from __future__ import annotations

from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pymoo.core.callback import Callback

from pymoo_gpuaco import checks
from pymoo_gpuaco.visualization.plots import draw_trails, plot_tour, trail_lines


class Frame(NamedTuple):
    """One frame: the best tour at a generation and, if requested, the trails."""

    generation: int
    length: float
    tour: NDArray[np.int64]  # (n,)
    trails: tuple[NDArray[np.float64], NDArray[np.float64]] | None  # lines (e, 2, 2), strengths (e,)


class TourAnimation(Callback):
    """Callback that stores each new best tour; call ``save("run.gif")`` after the run.

    Parameters
    ----------
    max_frames : maximum number of stored tours, >= 2; above it, every second one is dropped. Default 200.
    trails : True: store the pheromone trails and draw them behind the tour; only for ant colonies. Default False.
    """

    def __init__(self, max_frames: int = 200, trails: bool = False) -> None:
        super().__init__()
        self.max_frames = checks.integer("max_frames", max_frames, 2)
        self.trails = checks.flag("trails", trails)
        self.frames: list[Frame] = []
        self._problem: Any = None

    def _update(self, algorithm: Any) -> None:
        best = algorithm.opt[0]
        length = float(best.F[0])
        self._problem = algorithm.problem
        if not self.frames or length < self.frames[-1].length:
            trails = trail_lines(algorithm) if self.trails else None
            self.frames.append(Frame(int(algorithm.n_iter), length, np.array(best.X), trails))
            if len(self.frames) > self.max_frames:
                self.frames = self.frames[-1::-2][::-1]

    def save(self, path: str | PathLike[str], frames_per_second: int = 5) -> None:
        """Write a GIF of the stored tours. Raises ValueError before the first generation."""
        checks.integer("frames_per_second", frames_per_second, 1, 60)
        if not self.frames:
            raise ValueError("no tour recorded: pass the callback to minimize() first")
        figure = Figure(figsize=(6, 6), layout="constrained")
        ax = figure.add_subplot()

        def draw(index: int) -> list[Any]:
            frame = self.frames[index]
            ax.clear()
            if frame.trails is not None:
                draw_trails(ax, *frame.trails)
            title = f"generation {frame.generation}: {frame.length:.10g}"
            plot_tour(self._problem, frame.tour, ax=ax, title=title)
            return []

        movie = FuncAnimation(figure, draw, frames=len(self.frames))
        movie.save(str(path), writer=PillowWriter(fps=frames_per_second))
