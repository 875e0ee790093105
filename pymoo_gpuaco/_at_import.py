"""What Ctrl-C does while ``python -m pymoo_gpuaco.cli`` imports the package, which takes seconds: imported first."""

import sys

# the name of the program, until the module that is asked for has been found in its package
if sys.argv[:1] == ["-m"] and "pymoo_gpuaco.cli" in sys.orig_argv:
    import pymoo_gpuaco_command

    pymoo_gpuaco_command.leave_on_ctrl_c()
