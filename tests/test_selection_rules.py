"""One table of selection rules, which algorithms, engines, kernels and documentation follow."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from pymoo_gpuaco import GPUAS, GPUMMAS
from pymoo_gpuaco.backends.cuda.device import sources
from pymoo_gpuaco.backends.cuda.weights import RULE_CODES
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.selection import CODES, RULES, SelectionRule, offered_by
from tests.engine_cases import EXACT_AT_FIRST, cloud, colony

ROOT = Path(__file__).resolve().parents[1]
PAGES = {"GPUAS": "ant_system.md", "GPUMMAS": "mmas.md"}


@pytest.mark.parametrize("cls", [GPUAS, GPUMMAS])
def test_an_algorithm_takes_what_it_offers(cls):
    for selection in offered_by(cls.__name__):
        assert cls(selection=selection, candidate_list_size=None)._parameters().selection == selection


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_over_lists_a_rule_is_one_that_lists_know(rule):
    if rule.over_lists is None:
        with pytest.raises(
            ValueError, match=rf"candidate_list_size must be None with selection='{rule.name}'"
        ):
            ColonyParameters(selection=rule.name, candidate_list_size=8)
    else:
        assert RULES[rule.over_lists].over_lists == rule.over_lists
        ColonyParameters(selection=rule.name, candidate_list_size=8)


@pytest.mark.parametrize("selection", RULES)
def test_rules_that_draw_by_running_sums_alone_hold_them(selection):
    engine = colony(cloud(9), "cpu", selection=selection, candidate_list_size=None)
    drawn_by_sums = selection in ("stochastic_trial", "hybrid")
    assert engine._choice.prefix.shape == ((9, 9) if drawn_by_sums else (0, 0))


def test_an_inexact_rule_is_not_expected_to_draw_in_proportion():
    greedy = SelectionRule("greedy", ("GPUAS",), None, "a new rule", exact=False)
    assert not greedy.exact_at_first
    assert replace(greedy, switch=0.9).exact_at_first
    assert "acceptance_tournament" in EXACT_AT_FIRST  # until its switch


def test_kernels_know_rules_by_the_numbers_of_the_table_alone():
    assert RULE_CODES["RULE_HYBRID"] == CODES["hybrid"]
    used = set()
    for path in sources.folder().rglob("*.cu*"):
        text = path.read_text(encoding="utf-8")
        used |= set(re.findall(r"\bRULE_[A-Z_]+\b", text))
        # a name that is not defined would count as 0
        assert not re.search(r"SELECTION (==|!=) (?!RULE_)", text), path
        assert "define SELECTION" not in text, path
    assert {"RULE_WRS", "RULE_COMPRESSED"} <= used <= set(RULE_CODES)


@pytest.mark.parametrize("algorithm", PAGES)
def test_every_rule_has_a_row_on_the_page_of_its_algorithm(algorithm):
    page = (ROOT / "docs" / "algorithms" / PAGES[algorithm]).read_text(encoding="utf-8")
    rows = re.findall(r'^\| `"(\w+)"` \|', page, re.M)
    assert set(offered_by(algorithm)) <= set(rows)
