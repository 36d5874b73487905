"""How the host dashboard shows counters: one line, or one bar, per port."""

from __future__ import annotations

from typing import Any

from boards.measures import growth, meanings, moved, rate_unit, seen, still
from boards.model import Panel, Query
from boards.panels import BARS, by_port, lines
from boards.scopes import PORT

AT_PORT = "{{device}}/{{port}}"
AT_NETDEV = "{{device}}/{{port}} {{netdev}}"
AT_PRIORITY = "{{device}}/{{port}} {{netdev}} p{{priority}}"


QUIET = "none on any port"
SOMEWHERE = ".*"
"""Proof for queries that concern few ports: any scenario."""


def bars(
    title: str, reading: str, *series: tuple[str, str], scope: str = PORT, legend: str = AT_PORT, **place: Any
) -> Panel:
    """Rare events as bars, with their number per interval. `series`: a metric and its text in the legend."""
    queries = [
        Query(
            f"round({growth(name, scope)}) and {seen(name, scope)}",
            f"{legend} {said}".strip(),
            proof=SOMEWHERE,
        )
        for name, said in series
    ]
    return lines(
        title, explained(reading, *(name for name, _ in series)), "none",
        *queries, *_quiet(series, scope), custom=BARS, **place,
    )  # fmt: skip


def rates(
    title: str, reading: str, *series: tuple[str, str], scope: str = PORT, legend: str = AT_PORT, **place: Any
) -> Panel:
    """Rates of counters of one unit, for ports where they rose. `series`: a metric and its text in the legend."""
    queries = [
        Query(moved(name, scope), f"{legend} {said}".strip(), proof=SOMEWHERE) for name, said in series
    ]
    return lines(
        title, explained(reading, *(name for name, _ in series)), rate_unit(series[0][0]),
        *queries, *_quiet(series, scope), **_one_per_port(series), **place,
    )  # fmt: skip


def _quiet(series: tuple[tuple[str, str], ...], scope: str) -> list[Query]:
    """A line at 0 for each counter that exists but did not rise."""
    return [Query(still(name, scope), f"{said} {QUIET}".strip(), instead=True) for name, said in series]


def _one_per_port(series: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    return {"overrides": by_port()} if len(series) == 1 else {}


def explained(reading: str, *names: str) -> str:
    """The description of a panel, and the meaning of its metrics."""
    return f"{reading}\n\n{meanings(*names)}"
