"""The command line: ``pymoo-gpuaco solve | bench | compile | info``."""

from pymoo_gpuaco.cli.main import main, parser
from pymoo_gpuaco.cli.progress import Progress

__all__ = ["Progress", "main", "parser"]
