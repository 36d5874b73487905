"""A week of a simulated fleet, judged: `python tests/alerts/week.py --seed=1 --seed=2` prints the table of docs/alerts.md.

The truth is drawn first (`week_plan.py`), then what hosts and switches serve (`week_hosts.py`, `week_plan.py`), then a real Prometheus evaluates all rules
(`week_rules.py`), and a model of Alertmanager with our configuration sends the messages (`alert_messages.py`), which are compared with the truth.
"""

import argparse
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

# ruff: noqa: E402, T201 - a command as well: what pytest does to the path; it prints a table
from collections.abc import Mapping, Sequence

import yaml
from alert_messages import Message, messages
from alert_promtool import ALERTS
from remote_write import send
from servers import prometheus
from week_hosts import Clip
from week_plan import BEGIN, CRITICAL, DAY, FAULTS, KINDS, PER, Event, Fleet, clip_of, courses, draw, written
from week_rules import FLAGS, Fired, evaluated, groups_of_alerts

AFTER = 150
"""Minutes after the end of a fault in which alerts about it are no false ones: windows of an hour, and an hour for which an alert is kept."""
AT_ONCE = 250
"""Series per request."""


def all_clips() -> dict[str, Clip]:
    """Every clip, simulated on all cores."""
    names = [name for name, _ in courses()]
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        return dict(zip(names, pool.map(clip_of, names), strict=True))


def simulated(seed: int, fleet: Fleet, clips: Mapping[str, Clip]) -> tuple[list[Event], list[Fired]]:
    """The truth of a week, and what fired. Each cluster has a Prometheus of its own: no rule and no message is about two."""
    events = draw(seed, fleet)
    one = partial(_of_cluster, seed, fleet, events, clips)
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        return events, sorted(
            chain.from_iterable(pool.map(one, fleet.clusters)), key=lambda alert: alert.start
        )


def _of_cluster(
    seed: int, fleet: Fleet, events: list[Event], clips: Mapping[str, Clip], cluster: str
) -> list[Fired]:
    with tempfile.TemporaryDirectory() as folder, prometheus(Path(folder), {}, *FLAGS) as running:
        series = written(fleet, cluster, events, clips, seed)
        while some := [*islice(series, AT_ONCE)]:
            send(running, some)
        return evaluated(running, BEGIN, fleet.minutes, groups_of_alerts())


# ---- judgement


class Week(NamedTuple):
    """What the messages of a week were worth."""

    events: list[Event]
    messages: list[Message]
    fired: list[Fired]
    of: dict[Event, list[Message]]
    """The messages about each fault."""
    false: list[tuple[Message, dict[str, str]]]
    """Alerts that notified although nothing was wrong there, or that paged for a thing to repair."""

    @property
    def faults(self) -> list[Event]:
        """What should notify."""
        return [one for one in self.events if KINDS[one.kind].severity]

    @property
    def seen(self) -> dict[Event, int]:
        """Minutes from the start of a fault to the first message with a right alert."""
        return {
            event: min(right)
            for event in self.faults
            if (
                right := [
                    one.minute - event.start
                    for one in self.of[event]
                    if {dict(alert)["alertname"] for alert in one.new} & {*KINDS[event.kind].alerts.split()}
                ]
            )
        }

    @property
    def missed(self) -> list[Event]:
        """Faults without a right message."""
        return [one for one in self.faults if one not in self.seen]


def judged(events: Sequence[Event], fired: Sequence[Fired], sent: Sequence[Message]) -> Week:
    """The messages against the truth."""
    of: dict[Event, list[Message]] = defaultdict(list)
    false = []
    for message in sent:
        for alert in message.new:
            labels = dict(alert)
            faults = [
                one for one in events if KINDS[one.kind].severity and _about(one, labels, message.minute)
            ]
            right = [
                one
                for one in faults
                if labels["severity"] != CRITICAL or KINDS[one.kind].severity == CRITICAL
            ]
            if not right:
                false.append((message, labels))
            # of several faults of a place the one of which it is the right alert, then the latest
            for event in sorted(
                faults, key=lambda one: (labels["alertname"] in KINDS[one.kind].alerts.split(), one.start)
            )[-1:]:
                of[event] += [message] if message not in of[event] else []
    return Week([*events], [*sent], [*fired], of, false)


def _about(event: Event, labels: Mapping[str, str], minute: int) -> bool:
    """Whether an alert is at the place and in the time of an event."""
    if not event.start <= minute <= event.end + AFTER or labels.get("cluster") != event.cluster:
        return False
    places = {labels.get(name, "") for name in ("node", "host", "device", "switch", "instance")}
    return bool(places & {*event.hosts, *event.victims, event.switch} - {""}) or (
        labels["scope"] == "fabric"
        and (KINDS[event.kind].fabric or labels["alertname"] in KINDS[event.kind].alerts)
    )


def row(seed: int, fleet: Fleet, week: Week) -> tuple[str, ...]:
    """The line of a seed in the table."""
    scale = 1000 / fleet.hosts * 7 / fleet.days
    pages = sum(labels["severity"] == CRITICAL for _, labels in week.false)
    critical = [one for one in week.faults if KINDS[one.kind].severity == CRITICAL]
    once = sum(len(week.of[one]) == 1 for one in week.seen)
    times = sorted(week.seen.values())
    return (
        f"{seed}",
        f"{fleet.hosts}, {len(fleet.switches)}, {fleet.days}",
        f"{len(week.events) - len(week.faults)}, {len(week.faults)}",
        f"{len(week.fired) / fleet.days:.0f}, {sum(one.receiver == 'pager' for one in week.messages) / fleet.days:.1f}, {len(week.messages) / fleet.days:.1f}",
        f"{pages} ({pages * scale:.0f})",
        f"{len(week.false) - pages} ({(len(week.false) - pages) * scale:.0f})",
        f"{sum(one in week.missed for one in critical)} of {len(critical)}, {len(week.missed)} of {len(week.faults)}",
        f"{once / max(1, len(week.seen)):.0%}",
        f"{statistics.median(times) if times else 0:.0f} min, {times[-1] if times else 0} min",
    )


HEADS = (
    "seed",
    "hosts, switches, days",
    "everyday events, faults",
    "alerts, pages, messages a day",
    "false pages (per 1,000 hosts and week)",
    "false tickets (same)",
    "missed: critical, all",
    "faults with one message",
    "first right message: median, longest",
)


def lines_of(week: Week, fleet: Fleet) -> list[str]:
    """What to read when a table is not as it should be: per kind of fault, then what was false."""
    found = []
    for kind in FAULTS:
        for event in [one for one in week.events if one.kind == kind.name]:
            names = [
                ", ".join(sorted({dict(alert)["alertname"] for alert in one.new})) for one in week.of[event]
            ]
            when = f"{week.seen[event]} min" if event in week.seen else "MISSED"
            found.append(f"{kind.name}: {when}; {len(names)} messages: {' | '.join(names)}")
    for message, labels in week.false:
        near = [
            one.kind
            for one in week.events
            if {labels.get("node"), labels.get("device"), labels.get("host")}
            & {*one.hosts, *one.victims, one.switch}
            and one.start - 30 <= message.minute <= one.end + AFTER
        ]
        found.append(
            f"FALSE {labels['severity']} {labels['alertname']} day {message.minute // DAY + 1} {labels.get('node', labels['cluster'])}: {near or 'nothing'}"
        )
    return found


def main() -> None:
    """Print the table, and what it is made of on standard error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, action="append")
    parser.add_argument("--hosts", type=int, default=PER)
    parser.add_argument("--days", type=int, default=7)
    options = parser.parse_args()
    fleet, clips = Fleet(options.hosts, options.days), all_clips()
    config = yaml.safe_load((ALERTS / "alertmanager.yml").read_text())
    print(f"| {' | '.join(HEADS)} |\n|{' --- |' * len(HEADS)}", flush=True)
    for seed in options.seed or [1]:
        events, fired = simulated(seed, fleet, clips)
        week = judged(events, fired, messages(fired, config))
        print(f"| {' | '.join(row(seed, fleet, week))} |", flush=True)
        print("\n".join(lines_of(week, fleet)), file=sys.stderr)


if __name__ == "__main__":
    main()
