"""Plots of tours, fronts, convergence and trails, and an animation of a run, with Matplotlib."""

from pymoo_gpuaco.visualization.animation import TourAnimation
from pymoo_gpuaco.visualization.fronts import plot_front
from pymoo_gpuaco.visualization.plots import plot_convergence, plot_pheromone, plot_tour

__all__ = ["TourAnimation", "plot_convergence", "plot_front", "plot_pheromone", "plot_tour"]
