"""The boards checked against the behaviour of a real Grafana; each rule finds its fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dashboard_contents import DASHBOARDS, read
from grafana_faults import RULES, Rule

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("place", DASHBOARDS, ids=lambda place: place.stem)
def test_board_keeps_the_rule(place: Path, rule: Rule) -> None:
    assert list(rule.check(read(place))) == [], rule.mechanism


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule_finds_its_fault(rule: Rule) -> None:
    assert list(rule.check(rule.fault)), rule.mechanism
