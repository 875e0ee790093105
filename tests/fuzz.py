"""Number and seed of random draws, as ``make fuzz`` has it.

PYMOO_GPUACO_FUZZ multiplies how many cases are tried, PYMOO_GPUACO_FUZZ_SEED says which.
"""

import os

ASKED = "PYMOO_GPUACO_FUZZ" in os.environ
TIMES = int(os.environ.get("PYMOO_GPUACO_FUZZ", "1"))
SEED = int(os.environ.get("PYMOO_GPUACO_FUZZ_SEED", "1"))
