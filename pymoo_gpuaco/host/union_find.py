"""Disjoint sets as trees of parents, for compiled functions (Tarjan and van Leeuwen, Journal of the ACM 31, 1984)."""

from pymoo_gpuaco.host.compiled import inlined


@inlined
def representative(parent, i):  # type: ignore[no-untyped-def]
    """Representative of the set of i, halving the path to it."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i
