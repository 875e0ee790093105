"""Pictures: tours, fronts, convergence, trails, and an animation of a run. Each returns a matplotlib object."""

from pymoo_gpuaco.visualization.animation import TourAnimation
from pymoo_gpuaco.visualization.fronts import plot_front
from pymoo_gpuaco.visualization.plots import plot_convergence, plot_pheromone, plot_tour

__all__ = ["TourAnimation", "plot_convergence", "plot_front", "plot_pheromone", "plot_tour"]
