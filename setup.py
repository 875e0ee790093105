"""Compile the CPU engine when a wheel is built or a checkout is installed; all else is in pyproject.toml."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Command, Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build import build

LIBRARY = "_compiled.so"
PACKAGE = Path(__file__).parent / "pymoo_gpuaco"


class BuildEngine(Command):
    """Compile ``pymoo_gpuaco/_compiled.so`` in the source folder, and copy it into the wheel."""

    description = "compile the CPU engine"
    user_options = []
    editable_mode = False
    build_lib = None

    def initialize_options(self):
        pass

    def finalize_options(self):
        self.set_undefined_options("build_py", ("build_lib", "build_lib"))

    def run(self):
        built = subprocess.run(
            [sys.executable, "-m", "pymoo_gpuaco.runtime.build"],
            cwd=PACKAGE.parent,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        if built.returncode != 0:
            raise SystemExit("the CPU engine could not be built")  # the lines above name the reason
        if not self.editable_mode:
            target = Path(self.build_lib) / PACKAGE.name
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PACKAGE / LIBRARY, target)

    def get_source_files(self):
        return []

    def get_outputs(self):
        return [] if self.editable_mode else [str(Path(self.build_lib) / PACKAGE.name / LIBRARY)]

    def get_output_mapping(self):
        return {}


class BuildWithEngine(build):
    """The usual build, and the CPU engine."""

    sub_commands = [*build.sub_commands, ("build_engine", None)]


class PlatformWheel(bdist_wheel):
    """A wheel for any Python version on one platform: the library does not use Python."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class WithMachineCode(Distribution):
    """A distribution whose files belong to one platform."""

    def has_ext_modules(self):
        return True


def _linker():
    """Return ``ziglang``, a C compiler from the package index, where the system has none."""
    names = (os.environ.get("CC", "").split()[:1] or ["cc"])[0], "cc", "gcc", "clang"
    return [] if any(map(shutil.which, names)) or importlib.util.find_spec("ziglang") else ["ziglang"]


setup(
    distclass=WithMachineCode,
    cmdclass={"build": BuildWithEngine, "build_engine": BuildEngine, "bdist_wheel": PlatformWheel},
    setup_requires=_linker(),
)
