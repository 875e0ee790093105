"""What an engine is made of: arrays on the device and the kernels that work on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Source:
    """A file of kernels as one engine compiles it.

    ``kernels`` are those that the engine launches; what they take is read from the file, see ``signatures``.
    """

    file: str
    definitions: Mapping[str, object]
    kernels: Sequence[str]


class Part(Protocol):
    """Arrays on the device and the kernels that work on them; a part may have none. An engine is made of parts."""

    def sources(self) -> Sequence[Source]:
        """Return what is to be compiled."""
        return ()

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array by name; no two parts use the same name."""
        return {}

    def prepare(self) -> None:
        """Fill the arrays; those of all parts exist, and the parts listed before are prepared."""
        return


def together(*needed: Mapping[str, int]) -> dict[str, int]:
    """Return the arrays of several parts. Raises ValueError where two name one alike."""
    everything: dict[str, int] = {}
    for arrays in needed:
        twice = sorted(everything.keys() & arrays.keys())
        if twice:
            raise ValueError(f"two parts have an array of the same name: {', '.join(twice)}")
        everything.update(arrays)
    return everything


def by_file(sources: Sequence[Source]) -> dict[str, Mapping[str, object]]:
    """Return what each file is compiled with.

    Raises ValueError where two parts compile one file, or name a kernel alike: the second would replace the first.
    """
    wanted: dict[str, Mapping[str, object]] = {}
    kernels: set[str] = set()
    for source in sources:
        if source.file in wanted:
            raise ValueError(f"two parts compile the same file: {source.file}")
        twice = sorted(kernels.intersection(source.kernels))
        if twice:
            raise ValueError(f"two files have a kernel of the same name: {', '.join(twice)}")
        wanted[source.file] = source.definitions
        kernels.update(source.kernels)
    return wanted
