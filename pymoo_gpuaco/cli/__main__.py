"""``python -m pymoo_gpuaco.cli``."""

import sys

import pymoo_gpuaco_command

pymoo_gpuaco_command.hear_ctrl_c_again()
sys.exit(pymoo_gpuaco_command.main())
