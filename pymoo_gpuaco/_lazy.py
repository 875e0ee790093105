"""Names of a package that are imported at their first use (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package, which imports names and submodules at their first use.

    names : the names of the package, separated by spaces, by the submodule that defines them.
    """
    module_of = {name: module for module, own in names.items() for name in own.split()}

    def get(name: str) -> Any:
        missing = AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        if name in module_of:
            value = getattr(import_module(f"{package}.{module_of[name]}"), name)
        elif name.startswith("_"):
            raise missing
        else:
            try:
                value = import_module(f"{package}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{package}.{name}":
                    raise
                raise missing from None
        setattr(sys.modules[package], name, value)  # the next use does not come here
        return value

    def names_of() -> list[str]:
        return sorted({*vars(sys.modules[package]), *module_of})

    return get, names_of
