"""The alert on the kernel log fires for every event of severity failed, and for no other."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from roce_exporter.catalog.kernel_events import EVENTS, FAILED_EVENTS

ALERTS = Path(__file__).parents[2] / "alerts"


def test_the_rule_lists_the_failed_events() -> None:
    (rule,) = yaml.safe_load((ALERTS / "rules/kernel_log.yml").read_text())
    (listed,) = re.findall(r'event=~"([^"]*)"', rule["expr"])
    assert listed.split("|") == list(FAILED_EVENTS)


def test_the_runbook_explains_each_of_them() -> None:
    text = (ALERTS / "runbooks/RoceKernelLogFault.md").read_text()
    table = "".join(line for line in text.splitlines(keepends=True) if line.startswith("| `"))
    explained = re.findall(r"`(\w+)`", table)
    assert sorted(explained) == sorted(FAILED_EVENTS)
    assert len(EVENTS) > len(FAILED_EVENTS)
