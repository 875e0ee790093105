"""Command line: ``pymoo-gpuaco solve | bench | compile | info``."""

from pymoo_gpuaco.cli.main import main
from pymoo_gpuaco.cli.options import parser
from pymoo_gpuaco.cli.outputs import Progress

__all__ = ["Progress", "main", "parser"]
