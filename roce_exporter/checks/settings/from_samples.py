"""The settings of a host from the samples of its own audit: for Prometheus, which has results and no settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.catalog.named import CHECK_OK, CHECK_UNREADABLE
from roce_exporter.checks.finding import NotChecked, Report, Topic
from roce_exporter.checks.settings.auditor import ALL_CHECKS
from roce_exporter.checks.settings.check import CheckResult

if TYPE_CHECKING:
    from roce_exporter.checks.finding import Finding
    from roce_exporter.view.host_view import View

CHECKS = {check.id: check for check in ALL_CHECKS}


def settings_report(host: View) -> Report:
    """The findings of the newest moment. The values that were found are only on the host, and so are the commands that fill them in."""
    found: list[Finding] = []
    for row in (CHECK_OK, CHECK_UNREADABLE):
        for labels, value in host.current(row.name):
            check = CHECKS.get(labels["check"])
            if check is None or (row is CHECK_UNREADABLE and not value):
                continue
            result = CheckResult(bool(value) if row is CHECK_OK else None, "")
            place = (labels["device"], labels["port"], labels["netdev"])
            found.append(check.finding(Topic.SETTINGS, place, result))
    gaps = () if found else (NotChecked("settings: the exporter serves no results of checks", needed=True),)
    return Report(tuple(found), gaps)
