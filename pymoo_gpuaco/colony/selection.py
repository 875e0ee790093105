"""The table of selection rules, by which ants draw the next city; algorithms, engines, kernels and tests use it.

A row's place is the rule's number in compiled code: a constant of the CPU's functions, and ``RULE_<NAME>`` in kernels.
"""

from __future__ import annotations

from dataclasses import dataclass

BITS, LIST, BITS_THEN_LIST = "bits", "list", "bits, then list"
ACS = "pseudo_random_proportional"


@dataclass(frozen=True)
class SelectionRule:
    """How the next city is drawn.

    Parameters
    ----------
    name : as the argument ``selection`` names it.
    algorithms : which offer it.
    over_lists : the rule that it becomes where cities are drawn from candidate lists: itself, or one of the same
        distribution. None: it needs all cities.
    source : paper, and section or equation.
    exact : whether a city is always drawn in proportion to its weight (Eq. (1), paper 001; Eq. (2), paper 000).
    sums : whether it reads running sums of each row of weights, which are made once an iteration.
    remembers : how an ant on a GPU knows over all cities what is open: a bit a city, a list of the open cities, or
        bits until the rule changes and then the list. None: as the argument ``tabu`` says, or in a way of its own.
    switch : share of visited cities at which a rule that changes does so, where the user gave none.
    """

    name: str
    algorithms: tuple[str, ...]
    over_lists: str | None
    source: str
    exact: bool = True
    sums: bool = False
    remembers: str | None = None
    switch: float = 1.0


_TABLE = (
    SelectionRule("rwm", ("GPUMMAS",), "rwm", "section 4.2.1, paper 001"),
    SelectionRule("wrs", ("GPUMMAS",), "wrs", "section 4.2.2, paper 001"),
    SelectionRule("roulette", ("GPUAS",), "rwm", "section IV.B.1, paper 000", remembers=BITS),
    SelectionRule("compressed", ("GPUAS",), "rwm", "section IV.B.2, paper 000", remembers=LIST),
    SelectionRule(
        "stochastic_trial", ("GPUAS",), "rwm", "section IV.B.3, paper 000", sums=True, remembers=BITS
    ),
    SelectionRule(
        "hybrid",
        ("GPUAS",),
        "rwm",
        "section IV.B.4, paper 000",
        sums=True,
        remembers=BITS_THEN_LIST,
        switch=0.85,  # section V, paper 000
    ),
    SelectionRule(
        "acceptance_tournament",
        ("GPUAS",),
        None,
        "section IV.B, paper 004",
        exact=False,
        remembers=BITS_THEN_LIST,
        # Paper 004 gives no number; the later the switch, the shorter the tours (benchmarks/ant_system_updates.py).
        switch=0.99,
    ),
    SelectionRule(ACS, ("GPUACS",), ACS, "Eqs. (1) and (2), paper 003", exact=False),
)
RULES = {rule.name: rule for rule in _TABLE}
#: number of each rule in compiled code
CODES = {rule.name: number for number, rule in enumerate(_TABLE)}
SELECTIONS = ("auto", *RULES)


def offered_by(algorithm: str) -> tuple[str, ...]:
    """Return the allowed values of an algorithm's argument ``selection``."""
    return ("auto", *(rule.name for rule in _TABLE if algorithm in rule.algorithms))
