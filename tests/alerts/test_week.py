"""The judged week: what stands in for Prometheus and Alertmanager there does what they do, and the week is as good as it must be."""

import re
from collections.abc import Iterator

import pytest
import yaml
from alert_messages import messages
from alert_promtool import ALERTS, delivered, fired, history
from alert_scenario import labels_of
from remote_write import regular, send
from servers import prometheus
from test_all_rules import MINUTES, SITUATIONS, of_cluster
from week import all_clips, judged, simulated
from week_hosts import GONE, MINUTE, Clip, names
from week_plan import CRITICAL, FAULTS, KINDS, Fleet, _stuck, _switch, draw
from week_rules import DAY, FLAGS, Fired, _at_once, evaluated, spans

from roce_exporter.catalog import INDEX

CONFIG = yaml.safe_load((ALERTS / "alertmanager.yml").read_text())
UNSEEN = 20261126
"""A seed that no rule was tuned on."""


def test_what_joins_a_group_or_comes_back_is_a_message_and_what_lasts_is_none() -> None:
    port = {"cluster": "c", "node": "h", "device": "d", "port": "1", "scope": "host", "severity": "warning"}
    down, faulty = (
        {*(port | {"alertname": name}).items()} for name in ("RoceConfigCheckFailed", "RocePortFaulty")
    )
    given = [
        Fired(frozenset(down), 0, 500),
        Fired(frozenset(faulty), 100, 150),
        Fired(frozenset(faulty), 300, 310),
    ]
    assert [(one.minute, len(one.new)) for one in messages(given, CONFIG)] == [(5, 1), (105, 1), (305, 1)]


@pytest.mark.parametrize(
    ("active", "waits", "kept", "expected"),
    [
        ([5, 6, 7, 8], 0, 0, [(5, 9)]),
        ([5, 6, 7, 8], 2, 0, [(7, 9)]),
        ([5, 6, 8, 9], 2, 0, []),
        ([5, 6, 7, 10, 11, 20], 2, 3, [(7, 15)]),
        ([5, 6, 7, 30], 0, 1000, [(5, 100)]),
    ],
)
def test_an_alert_waits_and_is_kept(active, waits, kept, expected) -> None:
    assert list(spans(active, waits, kept, 100)) == expected


@pytest.mark.parametrize(
    ("expr", "pace", "minutes"),
    [
        ("a:b:c + d", 1, DAY),
        ("d or a:b:d", 1, 4),
        ("d or last_over_time(a:b:d[10m])", 2, 8),
        ("last_over_time(a:b:d[1h])", 1, 30),
    ],
)
def test_a_rule_is_evaluated_at_once_for_what_it_remembers(expr, pace, minutes) -> None:
    assert _at_once({"record": "a:b:d", "expr": expr}, pace) == minutes


def expanded(written: str) -> Iterator[float]:
    """The values of promtool's notation."""
    for one in written.split():
        start, step, times = re.fullmatch(r"(_|stale|[\d.e+-]+?)(?:\+([\d.e+-]+))?(?:x(\d+))?", one).groups()
        for number in range(int(times or 0) + 1 - (start == "_" and bool(times))):
            yield GONE if start in {"_", "stale"} else float(start) + number * float(step or 0)


@pytest.mark.ci
def test_the_rules_fire_as_in_promtool(tmp_path) -> None:
    """The situations of test_all_rules.py: the same alerts of the same things, at most two evaluations apart."""
    given = [one for name, (series, _) in SITUATIONS.items() for one in of_cluster(name, series)]
    # what remembers it takes one thing from two names
    target = 'cluster="vanished",job="roce",instance="h"'
    given.append({"series": f"roce_exporter_devices{{{target}}}", "values": f"1x33 0x{MINUTES}"})
    expected = fired(tmp_path, delivered(), history(given, MINUTES, 60), 60).spans
    begin = 1_767_225_600
    with prometheus(tmp_path / "past", {}, *FLAGS) as running:
        body = []
        for one in given:
            name, _, labels = one["series"].partition("{")
            values = [*expanded(one["values"])][:MINUTES]
            body.append(regular({"__name__": name, **labels_of(labels)}, begin, MINUTE, values))
        send(running, body)
        found = evaluated(running, begin, MINUTES, delivered())
    assert {one.labels for one in found} == set(expected)
    for one in found:
        assert min(abs(one.start - first // MINUTE) for first, _ in expected[one.labels]) <= 2
    assert len(found) >= 5


def test_the_truth_has_every_kind_of_fault() -> None:
    """Each in every week, and every alert that is said to be right exists."""
    events = draw(UNSEEN, Fleet(40, 7))
    assert {one.kind for one in events if KINDS[one.kind].severity} == {kind.name for kind in FAULTS}
    assert len(FAULTS) >= 20
    known = {rule.get("alert") for group in delivered() for rule in group["rules"]}
    assert {word for kind in FAULTS for word in kind.alerts.split()} <= known


def test_series_that_are_made_by_hand_are_those_of_the_catalogue() -> None:
    """An alert that reads another name or label would miss the fault, and the week would say so of the alert."""
    made = {*_stuck(Clip(1, {}), 1).series, *_switch("leaf", ("h",), ["m"], [], 1)} - {"up"}
    assert len(made) > 15
    for one in made:
        name = one.partition("{")[0]
        assert {*labels_of(one)} == {*INDEX.named[name].labels}, one
        assert name in names(), f"no rule reads {name}"


@pytest.mark.nightly
@pytest.mark.timeout(4 * 3600)
def test_a_week_is_worth_its_messages() -> None:
    fleet = Fleet(200, 7)
    events, found = simulated(UNSEEN, fleet, all_clips())
    week = judged(events, found, messages(found, CONFIG))
    pages = [labels for _, labels in week.false if labels["severity"] == CRITICAL]
    assert len(pages) * 5 <= 1
    assert (len(week.false) - len(pages)) * 5 <= 10
    assert not [one for one in week.missed if KINDS[one.kind].severity == CRITICAL]
    assert sum(len(week.of[one]) == 1 for one in week.seen) >= 0.9 * len(week.seen)
