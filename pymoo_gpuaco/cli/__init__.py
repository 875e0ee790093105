"""Command line: ``pymoo-gpuaco solve | bench | info``."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pymoo_gpuaco._lazy import lazy_names
from pymoo_gpuaco._version import __version__

if TYPE_CHECKING:
    from pymoo_gpuaco.cli.options import parser
    from pymoo_gpuaco.cli.outputs import Progress
else:
    __getattr__, __dir__ = lazy_names(__name__, {"options": "parser", "outputs": "Progress"})

__all__ = ["Progress", "main", "parser"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, see `commands.run`; an interrupt while modules are imported returns 130, too."""
    given = sys.argv[1:] if argv is None else [*argv]
    if given == ["--version"]:
        print(f"pymoo-gpuaco {__version__}")
        return 0
    try:
        from pymoo_gpuaco.cli.commands import run
    except KeyboardInterrupt:
        print("\npymoo-gpuaco: interrupted", file=sys.stderr)
        return 130
    return run(given)
