"""Table of the selection rules of ants, used by algorithms, engines, kernels and tests.

The index of a row is the code of the rule: a constant in compiled functions, and ``RULE_<NAME>`` in kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pymoo_gpuaco import checks

BITS, LIST, BITS_THEN_LIST = "bits", "list", "bits, then list"
ACS = "pseudo_random_proportional"


@dataclass(frozen=True)
class SelectionRule:
    """A rule of drawing the next city.

    Parameters
    ----------
    name : value of the argument ``selection``.
    algorithms : names of the algorithms that offer it.
    over_lists : rule with candidate lists: the same, or one with the same distribution. None: the rule requires all
        cities.
    source : paper, and section or equation.
    exact : True if a city is always drawn in proportion to its weight (Eq. (1), Skinderowicz 2020; Eq. (2), Uchida et
        al. 2012). With ``switch`` < 1 False means that this holds until the rule changes.
    sums : True if it reads running sums of each row of weights, computed once per iteration.
    remembers : memory of the unvisited cities of an ant on a GPU, over all cities: one bit per city, a list, or bits
        until the rule changes and then the list. None: by the argument ``tabu``, or special to the rule.
    switch : default share of visited cities at which the rule changes.
    """

    name: str
    algorithms: tuple[str, ...]
    over_lists: str | None
    source: str
    exact: bool = True
    sums: bool = False
    remembers: str | None = None
    switch: float = 1.0

    @property
    def exact_at_first(self) -> bool:
        """True if the first cities of a tour are drawn in proportion to their weights."""
        return self.exact or self.switch < 1.0


_TABLE = (
    SelectionRule("rwm", ("GPUMMAS",), "rwm", "section 4.2.1, Skinderowicz 2020"),
    SelectionRule("wrs", ("GPUMMAS",), "wrs", "section 4.2.2, Skinderowicz 2020"),
    SelectionRule("roulette", ("GPUAS",), "rwm", "section IV.B.1, Uchida et al. 2012", remembers=BITS),
    SelectionRule("compressed", ("GPUAS",), "rwm", "section IV.B.2, Uchida et al. 2012", remembers=LIST),
    SelectionRule(
        "stochastic_trial", ("GPUAS",), "rwm", "section IV.B.3, Uchida et al. 2012", sums=True, remembers=BITS
    ),
    SelectionRule(
        "hybrid",
        ("GPUAS",),
        "rwm",
        "section IV.B.4, Uchida et al. 2012",
        sums=True,
        remembers=BITS_THEN_LIST,
        switch=0.85,  # section V, Uchida et al. 2012
    ),
    SelectionRule(
        "acceptance_tournament",
        ("GPUAS",),
        None,
        "section IV.B, Murooka et al.",
        exact=False,
        remembers=BITS_THEN_LIST,
        switch=0.99,  # Murooka et al. give no number
    ),
    SelectionRule(ACS, ("GPUACS",), ACS, "Eqs. (1) and (2), Skinderowicz 2016", exact=False),
)
RULES = {rule.name: rule for rule in _TABLE}
#: code of each rule
CODES = {rule.name: number for number, rule in enumerate(_TABLE)}
SELECTIONS = ("auto", *RULES)


def check_selection(rule: Any, algorithm: str) -> None:
    """Raise ValueError for a rule that the algorithm does not offer; a function is a rule of the user."""
    if not callable(rule):
        checks.choice("selection", rule, offered_by(algorithm), "a function")


def offered_by(algorithm: str) -> tuple[str, ...]:
    """Return the allowed values of an algorithm's argument ``selection``."""
    return ("auto", *(rule.name for rule in _TABLE if algorithm in rule.algorithms))
