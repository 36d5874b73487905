"""One storm is one page, the cause is never muted, and the texts read well: with the real Alertmanager."""

import json
import re
import subprocess
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any

import pytest
import yaml
from alert_checks import as_sent
from alert_hooks import ALERTS, Alertmanager, as_received
from alert_messages import messages
from alert_promtool import delivered, seconds
from waiting import wait_until
from week_rules import Fired

CONFIG = yaml.safe_load((ALERTS / "alertmanager.yml").read_text())
RULES = {rule["alert"]: rule for group in delivered() for rule in group["rules"] if "alert" in rule}
FABRIC = "RocePfcStormWithoutCulprit"
CULPRIT = "RocePfcStorm, host_stopped"

BEGAN = "2026-01-02T03:04:05Z"
BOARD_TIME = "&from=1767319445000&to=now"
"""An hour before that."""
DOCUMENT, MARK = ALERTS.parent / "docs/alerts.md", "<!-- messages -->\n"

with_amtool = pytest.mark.usefixtures("amtool")


def alert(words: str, cluster: str) -> dict[str, Any]:
    """An alert of a case as Prometheus would send it: its title, then labels that differ."""
    title, *labels = words.split(" | ")
    sent = as_sent(title)
    changed = dict(label.split("=") for label in labels)
    return sent | {
        "labels": sent["labels"] | {"cluster": cluster} | changed,
        "startsAt": datetime.now(UTC).isoformat(),
    }


INCIDENTS: dict[str, tuple[int, list[str], list[str], list[str]]] = {
    # the number of pages, what is in them, what else is active, and what is muted
    "one host": (
        1,
        ["RocePfcStorm, slow_receiver"],
        [],
        [
            *("RocePortFaulty", "RocePfcStormEnded", "RocePacketLoss", "RocePeerUnreachable"),
            *("RoceNicPauseWatchdogTripped", "RoceSwitchWatchdogTripped"),
        ],
    ),
    "two culprits": (2, [CULPRIT, f"{CULPRIT} | instance=h2 | node=h2"], [], []),
    "one storm and its victims": (
        1,
        [CULPRIT],
        [],
        [
            f"{title} | instance={host} | node={host}"
            for host in ("h2", "h3")
            for title in ("RocePortVictim", "RocePeerUnreachable", "RocePacketLoss", "RocePacketLossSlow")
        ]
        + ["RocePfcPauseBudget"],
    ),
    "no culprit is known": (
        1,
        [FABRIC],
        [],
        ["RocePortVictim | instance=h2 | node=h2", "RocePfcPauseBudget"],
    ),
    "a storm on another host leaves what that host has by itself": (
        1,
        ["RocePfcStorm, slow_receiver | instance=h9 | node=h9"],
        ["RocePortFaulty", "RocePortDown | instance=h2 | node=h2", "RoceDataMissing | instance=h3 | node=h3"],
        [],
    ),
    # the host's exporter lacks the fast loop, so that only averages are known: they are muted, and the host is named
    "a tripped switch port whose host has no storm": (
        1,
        ["RoceSwitchWatchdogTripped"],
        ["RoceDeviceVanished"],
        ["RocePortFaulty", "RocePeerUnreachable"],
    ),
    # it may be the culprit, so no storm of another port mutes it
    "a tripped switch port of an unknown neighbour": (
        2,
        [
            "RocePfcStorm, slow_receiver",
            "RoceSwitchWatchdogTripped, without LLDP | instance=leaf7 | device=leaf7 | node=leaf7",
        ],
        [],
        ["RoceSwitchPausedBySwitch"],
    ),
    "a bad cable": (
        0,
        [],
        ["RocePortFaulty"],
        ["RocePacketLossSlow", "RocePeerUnreachable", "RocePortCause"],
    ),
    "a storm that is over": (0, [], ["RocePfcStormEnded"], ["RocePortFaulty"]),
    "a port that is down": (
        0,
        [],
        ["RocePortDown", "RocePortFaulty | port=2"],
        ["RocePortFaulty", "RocePeerUnreachable", "RocePacketLossSlow"],
    ),
    "a silent host": (
        0,
        [],
        [
            "RoceExporterDown",
            "RoceDataMissing | instance=h2 | node=h2",
            "RoceProbeLoss | instance=h2 | node=h2",
        ],
        ["RoceDataMissing", "RoceProbeLoss"],
    ),
    "a silent fabric": (
        1,
        ["RoceClusterBlind"],
        [],
        ["RoceExporterDown", "RoceExporterDown | instance=h2 | node=h2"],
    ),
    "settings of a host": (0, [], ["RoceConfigCheckFailed", "RocePortFaulty"], []),
}


def key(labels: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """An alert's identity."""
    return tuple(sorted(labels.items()))


@pytest.fixture(scope="module")
def incidents(alertmanager) -> Alertmanager:
    """An Alertmanager that has received all incidents, each with a cluster of its name."""
    sent = [
        alert(words, name) for name, (_, *states) in INCIDENTS.items() for state in states for words in state
    ]
    alertmanager.ask("/api/v2/alerts", sent)
    return alertmanager


@pytest.mark.parametrize("name", INCIDENTS)
def test_an_incident_is_few_pages_that_name_the_cause(incidents, name) -> None:
    """What is muted is neither paged nor a ticket."""
    count, paged, active, muted = (INCIDENTS[name][0], *map(set, INCIDENTS[name][1:]))
    wanted = {key(alert(words, name)["labels"]): words in muted for words in paged | active | muted}
    wait_until(
        lambda: (
            {key(one["labels"]): bool(one["status"]["inhibitedBy"]) for one in incidents.alerts(name)}
            == wanted
        )
    )
    expected = {key(alert(words, name)["labels"]) for words in paged}
    wait_until(lambda: alerts_in(incidents.hooks.of("pager", name)) >= expected)
    pages = incidents.hooks.of("pager", name)
    assert alerts_in(pages) == expected
    assert len({page["groupKey"] for page in pages}) == len(pages) == count
    tickets = alerts_in(incidents.hooks.of("tickets", name))
    assert not tickets & {labels for labels, is_muted in wanted.items() if is_muted}


@pytest.mark.parametrize("name", INCIDENTS)
def test_the_model_of_the_week_sends_what_alertmanager_sends(incidents, name) -> None:
    """Which alerts are in which message to whom: routes, groups and inhibitions."""
    sent = {key(alert(words, name)["labels"]) for state in INCIDENTS[name][1:] for words in state}
    modelled = messages([Fired(frozenset(labels), 0, 60) for labels in sent], CONFIG)
    expected = sorted((one.receiver, sorted(sorted(labels) for labels in one.alerts)) for one in modelled)

    def received() -> list[tuple[str, list[list[tuple[str, str]]]]]:
        found = [(way, one) for way in ("pager", "tickets") for one in incidents.hooks.of(way, name)]
        return sorted((way, sorted(sorted(labels) for labels in alerts_in([one]))) for way, one in found)

    wait_until(lambda: len(received()) >= len(expected))
    assert received() == expected


def alerts_in(messages: list[dict[str, Any]]) -> set[tuple[tuple[str, str], ...]]:
    """All alerts of these messages."""
    return {key(one["labels"]) for message in messages for one in message["alerts"]}


def test_a_silence_keeps_one_host_quiet_and_no_other(alertmanager) -> None:
    wanted = {"cluster": "silenced", "instance": "h1"}
    now = datetime.now(UTC)
    silence = {
        "matchers": [{"name": name, "value": text, "isRegex": False} for name, text in wanted.items()],
        "startsAt": now.isoformat(),
        "endsAt": (now + timedelta(hours=1)).isoformat(),
        "createdBy": "a test",
        "comment": "maintenance",
    }
    alertmanager.ask("/api/v2/silences", silence)
    both = [
        alert(words, "silenced") for words in ("RocePacketLoss", "RocePacketLoss | instance=h2 | node=h2")
    ]
    alertmanager.ask("/api/v2/alerts", both)
    pages = wait_until(lambda: alertmanager.hooks.of("pager", "silenced"))
    assert [[one["labels"]["instance"] for one in page["alerts"]] for page in pages] == [["h2"]]
    silenced = [one for one in alertmanager.alerts("silenced") if one["status"]["silencedBy"]]
    assert [one["labels"]["instance"] for one in silenced] == ["h1"]


@with_amtool
@pytest.mark.parametrize(
    ("name", "severity", "receiver"),
    [
        ("RocePfcStorm", "critical", "pager"),
        ("RoceClusterBlind", "critical", "pager"),
        ("RocePortFaulty", "warning", "tickets"),
        ("RocePortVictim", "info", "nobody"),
        ("OfOthers", "critical", "nobody"),
    ],
)
def test_pages_go_to_the_pager_tickets_to_the_tickets_and_the_rest_nowhere(name, severity, receiver) -> None:
    place = f"--config.file={ALERTS / 'alertmanager.yml'}"
    command = ["amtool", "config", "routes", "test", place, f"alertname={name}", f"severity={severity}"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == receiver


@with_amtool
def test_amtool_accepts_the_configuration() -> None:
    command = ["amtool", "check-config", str(ALERTS / "alertmanager.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def matched(matchers: list[str]) -> set[str]:
    """The alerts that these matchers select, by name and severity."""
    found = set()
    for name, rule in RULES.items():
        labels = {"alertname": name, "severity": rule["labels"]["severity"]}
        tests = [re.fullmatch(r'(\w+) (=~|!=|=) "(.*)"', one).groups() for one in matchers]
        if all((re.fullmatch(text, labels[key]) is not None) == (sign != "!=") for key, sign, text in tests):
            found.add(name)
    return found


def named(rules: list[dict[str, Any]], side: str) -> set[str]:
    """The alerts on a side of these rules."""
    return {name for rule in rules for name in matched(rule[side])}


INHIBITIONS = CONFIG["inhibit_rules"]
PACES = {
    rule["alert"]: seconds(group.get("interval", "0s"))
    for group in delivered()
    for rule in group["rules"]
    if "alert" in rule
}
"""Seconds between two evaluations of an alert; 0 for the evaluation_interval of Prometheus."""


def test_the_culprit_is_never_muted_and_every_alert_that_is_named_exists() -> None:
    assert "RocePfcStorm" not in named(INHIBITIONS, "target_matchers")
    assert len(INHIBITIONS) == 9
    text = str([rule[side] for rule in INHIBITIONS for side in ("source_matchers", "target_matchers")])
    assert set(re.findall(r"\bRoce[A-Z]\w+", text)) <= set(RULES)


def test_no_alert_is_source_and_target_of_one_rule() -> None:
    """Alertmanager 0.33 keeps one source for each set of equal labels; if that one is a target, too, the others mute nothing."""
    for rule in INHIBITIONS:
        assert not named([rule], "source_matchers") & named([rule], "target_matchers")


def test_an_alert_about_a_host_mutes_on_that_host_only() -> None:
    """Only a storm and silence mute in a whole cluster, and only their effects."""
    for rule in INHIBITIONS:
        assert rule["equal"][0] == "cluster"
        assert "node" in rule["equal"] or named([rule], "source_matchers") <= {
            "RocePfcStorm",
            "RocePfcStormWithoutCulprit",
            "RoceClusterBlind",
        }


def test_what_mutes_is_known_before_what_it_mutes_notifies() -> None:
    """Also where it is evaluated less often: its target waits for longer."""
    pairs = {
        (source, target)
        for rule in INHIBITIONS
        for source in named([rule], "source_matchers")
        for target in named([rule], "target_matchers")
    }
    assert len(pairs) > 20
    for source, target in pairs:
        if PACES[source] > PACES[target] and RULES[target]["labels"]["severity"] != "info":
            known = seconds(RULES[source].get("for", "0s")) + 2 * PACES[source]
            assert seconds(RULES[target]["for"]) > known, (source, target)


EFFECTS = {"RocePeerUnreachable", "RocePacketLoss"}
"""What a storm causes at other ports, and notifies. Budgets of hours and the reasons of a port are meant to last longer."""


def test_a_storm_outlasts_nothing_that_notifies_at_once() -> None:
    """Its effects wait, so that those of a storm that is over do not page: for two minutes or a quarter of an hour."""
    waits = {name: seconds(RULES[name]["for"]) for name in EFFECTS}
    kept = seconds(RULES["RocePfcStorm"]["keep_firing_for"])
    windows = {
        name: max(map(seconds, re.findall(r"\[(\d+m)\]", RULES[name]["expr"])), default=300)
        for name in EFFECTS
    }
    assert not {name for name in EFFECTS if windows[name] - waits[name] > kept}


def render(template: str, *alerts: dict[str, Any], kind: str = "text") -> str:
    """The output of amtool for a template."""
    firing = any(one["status"] == "firing" for one in alerts)
    data = {
        "receiver": "test",
        "status": "firing" if firing else "resolved",
        "alerts": list(alerts),
        "groupLabels": {"cluster": "east"},
        "commonLabels": {"cluster": "east"},
        "commonAnnotations": {},
        "externalURL": "http://alertmanager.example.com",
    }
    command = [
        *("amtool", "template", "render", f"--template.glob={ALERTS}/templates/*.tmpl"),
        *(f'--template.text={{{{ template "{template}" . }}}}', f"--template.type={kind}"),
        "--template.data=/dev/stdin",
    ]
    done = subprocess.run(command, input=json.dumps(data), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


FAULTS = {
    "A NIC that sends pause without end": "RocePfcStorm, with a tripped switch port",
    "Hosts that are paused, and no one is known to pause them": "RocePfcStormWithoutCulprit, with the paused jobs",
    "A path that loses packets of a job": "RocePacketLoss, of a job",
    "A bad cable": "RocePortFaulty, with its switch port",
    "A port that is down": "RocePortDown",
}
"""What docs/alerts.md shows."""


def shown(folder: Path) -> str:
    """The messages of these faults, as in docs/alerts.md."""
    sent = [
        alert(f"{title} | place={place}", f"east {place}") | {"startsAt": BEGAN}
        for place, title in enumerate(FAULTS.values())
    ]
    texts = zip(FAULTS, as_received(folder, sent), strict=True)
    return "".join(f"{said}:\n\n```text\n{text}\n```\n\n" for said, text in texts)


def test_the_document_has_the_messages_that_are_sent(tmp_path) -> None:
    """Write them with `python tests/alerts/write_fired.py`."""
    assert DOCUMENT.read_text().split(MARK)[1].strip() == shown(tmp_path).strip()


def state(title: str, status: str = "firing") -> dict[str, Any]:
    return alert(title, "east") | {"status": status, "startsAt": BEGAN}


@with_amtool
def test_the_title_has_the_most_important_fact() -> None:
    fabric, culprit = (as_sent(title)["annotations"]["summary"] for title in (FABRIC, CULPRIT))
    assert render("roce.title", state(CULPRIT), state(FABRIC)) == f"{fabric} (one of 2)"
    assert render("roce.title", state(CULPRIT)) == culprit
    assert render("roce.title", state(FABRIC, "resolved"), state(CULPRIT)) == f"{culprit} (one of 2)"
    assert render("roce.title", state(CULPRIT, "resolved")) == f"Resolved: {culprit}"


@with_amtool
def test_the_body_lists_firing_alerts_and_then_resolved_ones() -> None:
    culprit, fabric = as_sent(CULPRIT)["annotations"], as_sent(FABRIC)["annotations"]
    links = f"Board: {culprit['dashboard_url']}{BOARD_TIME}\nRunbook: {culprit['runbook_url']}"
    first = f"{culprit['summary']}\n{culprit['description']}\n{links}"
    body = render("roce.text", state(FABRIC, "resolved"), state(CULPRIT))
    assert body == f"{first}\n\nResolved: {fabric['summary']}"
    assert render("roce.hosts", state(FABRIC), state(CULPRIT)) == "h1"
    html = render("roce.html", state(CULPRIT), kind="html")
    assert html.startswith("<!DOCTYPE html>")
    assert f'<a href="{culprit["runbook_url"]}">What to do</a> · <a href="' in html
    board = escape(culprit["dashboard_url"]) + BOARD_TIME
    assert f'{board}">Board</a> · since 2026-01-02 03:04:05 UTC' in html
    assert "<no value>" not in html
