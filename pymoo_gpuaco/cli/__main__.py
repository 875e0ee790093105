"""Entry point of ``python -m pymoo_gpuaco.cli``."""

import sys

from pymoo_gpuaco.cli import main

sys.exit(main())
