"""THE table: every metric is a row, and the row lists every driver's raw name for it.

The rows are in `tables/`, in the form that `table.py` describes. The rest of the program queries `INDEX`; a table that
contradicts itself is refused on import.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from roce_exporter.catalog.drivers import DIALECTS, dialect_of
from roce_exporter.catalog.left_out import reason_for
from roce_exporter.catalog.row import (
    ANY,
    COUNTER,
    ETHTOOL,
    GAUGE,
    HISTOGRAM,
    HW_COUNTERS,
    NETDEV_LABELS,
    Row,
    Spelling,
)
from roce_exporter.catalog.switch_systems import SWITCH_SYSTEMS
from roce_exporter.catalog.table import Area, CatalogError, areas
from roce_exporter.catalog.windows import WINDOWS_DIALECTS

__all__ = ["DIALECTS", "SWITCH_SYSTEMS", "Area", "CatalogError", "dialect_of"]

AREAS: tuple[Area, ...] = areas()
PROCESS = "process"
"""The area of what every process that serves has in every set."""
CATALOG: tuple[Row, ...] = tuple(row for area in AREAS for row in area.rows)

_METRIC = re.compile(r"(roce|process)_[a-z0-9]+(_[a-z0-9]+)*")
_LABEL = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_PLACEHOLDER = re.compile(r"\\\{(\w+)\\\}")

Claim = tuple[str, str, str]
"""Dialect, source and raw name."""


@dataclass(frozen=True, slots=True)
class Index:
    """A checked catalogue."""

    rows: tuple[Row, ...]
    named: Mapping[str, Row]
    claims: Mapping[Claim, Row]
    patterns: tuple[tuple[Claim, Row], ...]
    """Each raw name that holds a placeholder; its expression is compiled when a name is compared with it."""

    def claimed(self, dialect: str, source: str, raw: str) -> Row | None:
        """The row that a raw name belongs to, or None."""
        if row := self.claims.get((dialect, source, raw)):
            return row
        # A driver for which a common name is left out means something else by it than the row.
        if (row := self.claims.get((ANY, source, raw))) and not reason_for(dialect, source, raw):
            return row
        for (speaker, where, pattern), row in self.patterns:
            if speaker in (dialect, ANY) and where == source and pattern_of(pattern).fullmatch(raw):
                return row
        return None

    def left_out(self, dialect: str, source: str, raw: str) -> str:
        """Why a raw name is deliberately not exported; empty when it is not left out."""
        return reason_for(dialect, source, raw)

    def speaks(self, dialect: str, spelling: Spelling) -> bool:
        """Whether this spelling means the row's fact on a device of this dialect."""
        return _speaks(dialect, spelling)

    def recognise(self, names: Collection[str]) -> str:
        """The dialect that matches most of these names of hardware counters; empty without a match or on a tie.

        Between two with equally many matches, the one that has the larger share of its own names matched wins.
        """
        best: list[tuple[int, float, str]] = sorted(
            (score for dialect in DIALECTS if (score := self._score(dialect, names))[0]), reverse=True
        )
        if not best or (len(best) > 1 and best[0][:2] == best[1][:2]):
            return ""
        return best[0][2]

    def _score(self, dialect: str, names: Collection[str]) -> tuple[int, float, str]:
        vocabulary = {
            raw for speaker, source, raw in self.claims if speaker == dialect and source == HW_COUNTERS
        }
        known = len(vocabulary & set(names))
        return known, known / len(vocabulary) if vocabulary else 0.0, dialect


def check(rows: Iterable[Row]) -> Index:
    """Index a table.

    Raises:
        CatalogError: a name is listed twice, a raw name is claimed by two rows, or a row breaks the rules of names and labels.
    """
    rows = tuple(rows)
    named: dict[str, Row] = {}
    claims: dict[Claim, Row] = {}
    patterns = []
    for row in rows:
        _check_row(row)
        if row.name in named:
            raise CatalogError(f"{row.name}: is listed twice in the catalogue")
        named[row.name] = row
        for spelling in row.spellings:
            # The raw names of a difference have rows of their own.
            for raw in () if spelling.difference else spelling.raw:
                if "{" in raw:
                    patterns.append(((spelling.dialect, spelling.source, raw), row))
                _claim(claims, (spelling.dialect, spelling.source, raw), row)
    return Index(rows, named, claims, tuple(patterns))


@cache
def pattern_of(raw: str) -> re.Pattern[str]:
    """The expression for a raw name that holds placeholders: `rx_prio{priority}_pause`."""
    return re.compile(
        _PLACEHOLDER.sub(lambda match: f"(?P<{match[1]}>{FORMS.get(match[1], NUMBERS)})", re.escape(raw))
    )


@cache
def _speaks(dialect: str, spelling: Spelling) -> bool:
    if spelling.dialect != ANY:
        return spelling.dialect == dialect
    return not any(reason_for(dialect, spelling.source, raw) for raw in spelling.raw)


FORMS = {
    **dict.fromkeys(("counter", "flag", "sensor", "role", "parameter", "le", "reporter"), ".+"),
    "stage": "[a-z]+",
    "component": "[^ ]+",
    "version": "(?s:.*)",
    "mac": "[0-9a-f]{2}(?::[0-9a-f]{2}){5}",
    "pci": "[0-9a-f.:]*",
    "rdma_device": "[^ ]*",
    "state": "[a-z]+",
    "hostname": "(?s:.*)",
}
"""What a placeholder matches. All others (priority, lane, queue and so on) match `NUMBERS`."""
NUMBERS = "[0-9]+"


def _claim(claims: dict[Claim, Row], claim: Claim, row: Row) -> None:
    dialect, source, raw = claim
    for speaker in (*DIALECTS, ANY) if dialect == ANY else (dialect, ANY):
        if other := claims.get((speaker, source, raw)):
            raise CatalogError(
                f"{row.name}: {raw!r} of {dialect} in {source} is already claimed by {other.name}"
            )
    claims[claim] = row


def _check_row(row: Row) -> None:
    fault = ""
    known = {*DIALECTS, *SWITCH_SYSTEMS, *WINDOWS_DIALECTS, ANY}
    if not _METRIC.fullmatch(row.name):
        fault = "is not a valid metric name"
    elif row.kind not in (COUNTER, GAUGE, HISTOGRAM):
        fault = f"has the unknown kind {row.kind!r}"
    elif (row.kind == COUNTER) != row.name.endswith("_total"):
        fault = "must end in _total if and only if it is a counter"
    elif not row.help.strip() or not row.unit:
        fault = "has no help or no unit"
    elif not all(_LABEL.fullmatch(label) for label in row.labels):
        fault = "has a bad label name"
    elif unknown := {spelling.dialect for spelling in row.spellings} - known:
        fault = f"has a spelling of the unknown dialect {', '.join(sorted(unknown))}"
    elif not all(spelling.raw for spelling in row.spellings):
        fault = "has a spelling without a raw name"
    elif wrong := [one.raw for one in row.spellings if not _gives(row.labels, one)]:
        fault = f"has other labels than its spelling {' + '.join(wrong[0])} gives"
    if fault:
        raise CatalogError(f"{row.name}: {fault}")


def _gives(labels: tuple[str, ...], spelling: Spelling) -> bool:
    """Whether every raw name of a spelling gives these labels: first the place, then the placeholders in their order."""
    for raw in spelling.raw:
        given = tuple(_PLACEHOLDER.findall(re.escape(raw)))
        place = labels[: len(labels) - len(given)]
        if (*place, *given) != labels or (spelling.source == ETHTOOL and place != NETDEV_LABELS):
            return False
    return True


INDEX = check(CATALOG)
ROWS = INDEX.named
