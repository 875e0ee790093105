"""Assignment of islands to workers: as few islands for each thread of a worker as possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pymoo_gpuaco.islands.member import Member

Workers = Mapping[str, int]  # address: threads


def emptiest(member: Member, members: Sequence[Member], workers: Workers) -> str:
    """Return the worker with the fewest other islands for each thread, "" where there is no worker."""
    return min(workers, key=lambda worker: _load(worker, member, members, workers), default="")


def is_crowded(member: Member, members: Sequence[Member], workers: Workers) -> bool:
    """Whether an island would do better on another worker, such as one that has just joined."""
    if member.worker not in workers:
        return False
    here = _load(member.worker, member, members, workers)
    # a move transfers the whole colony: not for less than half an island
    return any(_load(one, member, members, workers) + 0.5 / max(1, workers[one]) < here for one in workers)


def neighbours(member: Member, members: Sequence[Member]) -> int:
    """Islands on a member's host, itself among them."""
    return sum(_host(one.worker) == _host(member.worker) for one in members)


def _load(worker: str, without: Member, members: Sequence[Member], workers: Workers) -> float:
    """Other islands than ``without`` for each thread of a worker."""
    islands = sum(member.worker == worker for member in members if member is not without)
    return islands / max(1, workers[worker])


def _host(address: str) -> str:
    """A worker's host, as its address names it."""
    return address.rpartition(":")[0]
