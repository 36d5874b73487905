"""All rules over the history of a week, by a real Prometheus: each expression as a range query, a day at a time, at the pace of its group.

Results of recordings are written back before rules that read them are evaluated; a rule that reads what it recorded is evaluated as many
minutes at a time as it remembers. `for` and `keep_firing_for` are applied here, as Prometheus does; tests/alerts/test_week.py compares both
with promtool.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from alert_promtool import delivered, name_of, needed, seconds
from remote_write import regular, send
from week_hosts import GONE, MINUTE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from alert_promtool import Groups
    from servers import Running

    Labels = frozenset[tuple[str, str]]
    Rule = dict[str, Any]

DAY = 24 * 60
LOOKBACK, LONGEST = 5, 30
"""Minutes for which Prometheus remembers a sample, and the most for which a rule that reads itself is evaluated at once."""
FLAGS = (
    "--web.enable-remote-write-receiver",
    "--storage.tsdb.retention.time=100y",
    "--storage.tsdb.min-block-duration=30d",
    "--storage.tsdb.max-block-duration=30d",
    "--query.max-samples=200000000",
)


class Fired(NamedTuple):
    """An alert from the minute at which it begins to fire to before the one at which it no longer does."""

    labels: Labels
    start: int
    end: int

    @property
    def known(self) -> dict[str, str]:
        """Its labels."""
        return dict(self.labels)


def groups_of_alerts() -> Groups:
    """The rules without what only boards read."""
    return needed(
        {rule["alert"] for group in delivered() for rule in group["rules"] if "alert" in rule}, delivered()
    )


def evaluated(running: Running, begin: int, minutes: int, groups: Groups) -> list[Fired]:
    """What fires in a history that begins at this Unix time."""
    rules = [*_in_order([rule for group in groups for rule in group["rules"]])]
    paces = {id(rule): _minutes(group, "interval") or 1 for group in groups for rule in group["rules"]}
    held: list[dict[Labels, list[int]]] = [defaultdict(list) for _ in rules]
    alive: list[set[Labels]] = [set() for _ in rules]
    for day in range(0, minutes, DAY):
        until = min(day + DAY, minutes)
        for place, rule in enumerate(rules):
            pace = paces[id(rule)]
            for start, end in pairwise([*range(day, until, _at_once(rule, pace)), until]):
                found = _values(running, rule, begin, range(start, end, pace))
                if "alert" in rule:
                    for labels, values in found.items():
                        held[place][labels] += [
                            minute
                            for first, value in zip(range(start, end, pace), values, strict=True)
                            if value is not GONE
                            for minute in range(first, first + pace)
                        ]
                else:
                    _record(running, found, alive[place], begin, range(start, end, pace))
    return sorted(
        (
            Fired(labels, *span)
            for rule, found in zip(rules, held, strict=True)
            for labels, active in found.items()
            for span in spans(active, _minutes(rule, "for"), _minutes(rule, "keep_firing_for"), minutes)
        ),
        key=lambda one: one.start,
    )


def _at_once(rule: Rule, pace: int) -> int:
    """Minutes, a multiple of its pace, for which a rule can be evaluated before what it recorded must be written."""
    name = re.escape(name_of(rule))
    if not _reads(rule, name_of(rule)):
        return DAY
    windows = re.findall(rf"(?<![:\w]){name}(?:{{[^}}]*}})?(?:\[(\w+)\])?(?![:\w\[{{])", rule["expr"])
    shortest = min(seconds(one) // MINUTE if one else LOOKBACK for one in windows)
    return max(pace, min(shortest - 1, LONGEST) // pace * pace)


def spans(active: list[int], waits: int, kept: int, minutes: int) -> Iterator[tuple[int, int]]:
    """When an alert fires whose condition holds at these minutes."""
    since = fires = None
    last = -1
    for minute in [*active, minutes + kept + 1]:
        if since is not None and minute > last + 1:
            if fires is not None and minute > last + 1 + kept:
                yield fires, min(last + 1 + kept, minutes)
                since = fires = None
            elif fires is None:
                since = None
        if since is None:
            since = minute
        if fires is None and minute - since >= waits and minute < minutes:
            fires = minute
        last = minute


def _minutes(rule: Rule, key: str) -> int:
    return -(-seconds(rule.get(key, "0s")) // MINUTE)


def _reads(rule: Rule, name: str) -> bool:
    return re.search(rf"(?<![:\w]){re.escape(name)}(?![:\w])", rule["expr"]) is not None


def _in_order(waiting: list[Rule]) -> Iterator[Rule]:
    """Each rule after those whose results it reads."""
    while waiting:
        unmade = {rule["record"] for rule in waiting if "record" in rule}
        ready = [rule for rule in waiting if not any(_reads(rule, one) for one in unmade - {name_of(rule)})]
        assert ready, f"rules that depend on each other: {unmade}"
        yield from ready
        waiting = [rule for rule in waiting if rule not in ready]


def _values(running: Running, rule: Rule, begin: int, minutes: range) -> dict[Labels, list[float]]:
    """The result at these minutes, by labels; `GONE` where there is none."""
    first, step = begin + minutes.start * MINUTE, minutes.step * MINUTE
    times = {"start": first, "end": begin + minutes[-1] * MINUTE, "step": step}
    found: dict[Labels, list[float]] = {}
    for one in running.ask("query_range", query=rule["expr"], **times)["result"]:
        labels = {key: text for key, text in one["metric"].items() if key != "__name__"} | rule.get(
            "labels", {}
        )
        labels |= {"alertname": rule["alert"]} if "alert" in rule else {"__name__": rule["record"]}
        # a rule may take one thing from series of several names
        values = found.setdefault(frozenset(labels.items()), [GONE] * len(minutes))
        for at, value in one["values"]:
            values[round(at - first) // step] = float(value)
    return found


def _record(
    running: Running, found: dict[Labels, list[float]], alive: set[Labels], begin: int, minutes: range
) -> None:
    """Write what was recorded, and the end of series that were alive and are not any more."""
    written = found | {labels: [GONE] * len(minutes) for labels in alive - found.keys()}
    if written:
        first, step = begin + minutes.start * MINUTE, minutes.step * MINUTE
        send(
            running,
            (
                regular(dict(labels), first, step, values, before=labels in alive)
                for labels, values in written.items()
            ),
        )
    alive.clear()
    alive |= {labels for labels, values in found.items() if values[-1] is not GONE}
