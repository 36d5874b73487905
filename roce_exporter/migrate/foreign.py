"""Other exporters' metrics and the same facts in ours, made from the catalogue's spellings and each exporter's naming."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import gcd
from typing import NamedTuple

from roce_exporter.catalog import CATALOG, DIALECTS, INDEX
from roce_exporter.catalog.left_out import LEFT_OUT, NARROW, NEVER, SUM, LeftOut, entry_of
from roce_exporter.catalog.row import ANY, Row, Spelling
from roce_exporter.migrate import node_exporter, rdma_exporter, spiderpool
from roce_exporter.migrate.naming import Pairs, Written

SAME_FACT = (NARROW, NEVER, SUM)
"""Reasons for which a driver's raw name is left out although it is the same fact: it is counted badly, or counted twice."""

HOSTS = {*DIALECTS, ANY}  # the dialects of hosts: the systems of switches have spellings too

NAMES = {"node_exporter": node_exporter, "rdma_exporter": rdma_exporter, "spiderpool": spiderpool}
EXPORTERS: tuple[str, ...] = tuple(NAMES)


@dataclass(frozen=True, slots=True)
class Foreign:
    """One metric of another exporter, and the same fact in ours."""

    exporter: str
    name: str
    """Their metric: `node_infiniband_port_data_received_bytes_total`."""
    ours: str
    """Our metric, a row of the catalogue: `roce_port_receive_bytes_total`."""
    times: int
    per: int
    """Our value is theirs x `times` / `per`: 4 for the doublewords of rdma_exporter."""
    matching: Pairs
    """Our label and the value that selects the fact in ours: `(("priority", "3"),)`."""
    labels: Pairs
    """Their label and ours with the same values: `(("device", "device"), ("port", "port"))` or `(("device", "netdev"),)`."""
    loss: str
    """Empty when nothing is lost, else one sentence."""
    where: Pairs = ()
    """Their label and the value that selects the fact in theirs: `(("direction", "rx"),)`. Otherwise the name is enough."""
    dialects: tuple[str, ...] = ()
    """The drivers that have the raw name; empty: all. Read by `alerts/compat_rules.py`."""


_PLAIN = Spelling(ANY, "", ("",))  # the spelling of a fact that is not a driver's counter


class Candidate(NamedTuple):
    """One raw name of a row, as another exporter writes it."""

    row: Row
    spelling: Spelling
    raw: str
    written: Written


@cache
def foreign_metrics(exporter: str) -> tuple[Foreign, ...]:
    """The metrics of another exporter that have the fact of one of our metrics, sorted by name."""
    found = [_foreign(exporter, group) for group in groups_of(exporter).values() if not _fault(group)]
    return tuple(sorted(found, key=lambda one: (one.name, one.where, one.ours, one.matching)))


@cache
def untranslatable(exporter: str) -> Mapping[str, str]:
    """Names of another exporter without a metric of ours, as regular expressions of the whole name, and why in one sentence."""
    faults = {key[0]: fault for key, group in groups_of(exporter).items() if (fault := _fault(group))}
    left_out = {}
    names = sorted({one.name for one in foreign_metrics(exporter)})
    for entry in LEFT_OUT:
        pattern = NAMES[exporter].pattern_of(entry.source, entry.pattern)
        if pattern and entry.reason.category not in SAME_FACT:
            # Without names that another driver, or the exporter itself, has for a fact of ours.
            matched = [name for name in names if re.fullmatch(pattern, name)]
            left_out[f"(?!({'|'.join(matched)})$){pattern}" if matched else pattern] = entry.reason.text
    return {**faults, **NAMES[exporter].UNTRANSLATABLE, **left_out}


@cache
def groups_of(exporter: str) -> dict[tuple[str, Pairs], list[Candidate]]:
    """What each name of an exporter can be, by the name and the labels that select it."""
    groups = defaultdict(list)
    # The raw names of a difference have rows of their own.
    spellings = ((row, one) for row in CATALOG for one in row.spellings if not one.difference)
    for row, spelling in spellings:
        for raw in spelling.raw if spelling.dialect in HOSTS else ():
            for one in NAMES[exporter].written(spelling.source, raw, row.labels):
                groups[one.name, one.where].append(Candidate(row, spelling, raw, one))
    for name, one in NAMES[exporter].FACTS:
        groups[one.name, one.where].append(Candidate(INDEX.named[name], _PLAIN, "", one))
    return groups


def _fault(group: list[Candidate]) -> str:
    """Why a name is not one fact of ours; empty when it is."""
    if sums := [one for one in group if len(one.spelling.raw) > 1]:
        row, spelling = sums[0].row, sums[0].spelling
        return f"a part of {row.name} of {spelling.dialect}, which adds up {' and '.join(spelling.raw)}"
    return unclear(group)


def unclear(group: list[Candidate]) -> str:
    """Why a name, or its part of a sum, is not the same for all drivers; empty when it is."""
    rows = sorted({one.row.name for one in group})
    if len({(one.row, len(one.spelling.raw) > 1, factor_of(one), one.written.matching) for one in group}) > 1:
        return f"the drivers mean different facts, units or labels of them by it: {', '.join(rows)}"
    others = {
        dialect: entry.reason.text
        for dialect, entry in _refusals(group)
        if entry.reason.category not in SAME_FACT
    }
    if not others:
        return ""
    drivers = ", ".join(dialects_of(group)) or "most drivers"
    return f"{rows[0]} on {drivers}, but on {', '.join(sorted(others))}: {others[min(others)]}"


def _refusals(group: list[Candidate]) -> Iterator[tuple[str, LeftOut]]:
    """The drivers for which the catalogue leaves the raw name out, and why."""
    first = group[0]
    for dialect in sorted(set(DIALECTS) - set(dialects_of(group))):
        if entry := entry_of(dialect, first.spelling.source, first.raw):
            yield dialect, entry


def factor_of(one: Candidate) -> tuple[int, int]:
    """Our value is theirs x the first number / the second."""
    times = one.spelling.times * one.written.per
    per = one.spelling.per * one.written.times
    common = gcd(times, per)
    return times // common, per // common


def _foreign(exporter: str, group: list[Candidate]) -> Foreign:
    first, written = group[0], group[0].written
    # What is lost: drivers that count the fact badly under this name, or what the exporter's labels lack.
    by_reason = defaultdict(list)
    for dialect, entry in _refusals(group):
        by_reason[entry.reason.text].append(dialect)
    parts = [written.loss]
    parts += [f"on {', '.join(dialects)}: {text}" for text, dialects in sorted(by_reason.items())]
    loss = "; ".join(filter(None, parts))
    names, factor = (exporter, written.name, first.row.name), factor_of(first)
    return Foreign(*names, *factor, written.matching, written.labels, loss, written.where, dialects_of(group))


def dialects_of(group: list[Candidate]) -> tuple[str, ...]:
    """The drivers that have a name; empty: all."""
    dialects = {one.spelling.dialect for one in group}
    return () if ANY in dialects else tuple(sorted(dialects))
