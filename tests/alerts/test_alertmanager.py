"""One storm is one page, the cause is never muted, and the texts read well: with the real Alertmanager."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from alert_checks import as_sent
from alert_hooks import ALERTS
from alert_promtool import delivered, seconds
from waiting import wait_until

if TYPE_CHECKING:
    from alert_hooks import Alertmanager

CONFIG = yaml.safe_load((ALERTS / "alertmanager.yml").read_text())
RULES = {rule["alert"]: rule for group in delivered() for rule in group["rules"] if "alert" in rule}
STORMS = ("RocePfcStormFabricWide", "RocePfcStormTransmitted", "RoceNicPauseWatchdogTripped")
FABRIC = "RocePfcStormFabricWide, with the sending hosts"
CULPRIT = "RocePfcStormTransmitted, host_stopped"
DROPS = "RoceLosslessPriorityDrops"

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
        ["RocePfcStormTransmitted, slow_receiver"],
        [],
        [
            *(
                "RocePfcTransmitPauseSaturated",
                "RocePfcLongPause, transmitted",
                "RocePfcPauseHigh, transmitted",
            ),
            *("RoceSlowReceiver", "RoceNicPauseWatchdogWarning", DROPS, "RoceSwitchWatchdogTripped"),
        ],
    ),
    "many hosts": (
        1,
        [FABRIC, CULPRIT, "RoceNicPauseWatchdogTripped"],
        [],
        [
            f"{title} | instance={host}"
            for host in ("h2", "h3")
            for title in (
                *("RocePfcStormReceived, paused_by_fabric", "RocePfcReceivePauseSaturated"),
                *("RoceAckTimeouts", "RocePacketLossCritical"),
            )
        ],
    ),
    "a storm in another cluster or on another host mutes nothing": (
        1,
        ["RocePfcStormTransmitted, slow_receiver | instance=h9"],
        ["RocePfcStormReceived, paused_by_fabric", "RoceSlowReceiver"],
        [],
    ),
    # a host that stops receiving drops packets as well; drops at its other port and on another host have another cause
    **{
        f"drops and {culprit}": (
            2,
            [culprit, f"{DROPS} | port=2", f"{DROPS} | instance=h2"],
            [],
            [DROPS],
        )
        for culprit in (CULPRIT, "RoceNicPauseWatchdogTripped", "RoceSwitchWatchdogTripped")
    },
    # also next to pause of that port: it is sent too late, or the priority of the drops has none
    "drops without a storm": (1, [DROPS], ["RocePfcPauseHigh, transmitted"], []),
    "a sent storm and received pause": (
        1,
        ["RocePfcStormTransmitted, slow_receiver"],
        ["RocePfcPauseHigh"],
        ["RocePfcLongPause, transmitted"],
    ),
    # the host's exporter lacks the fast loop, so that only averages are known: they are muted, and the host is named
    "a tripped switch port whose host has no storm": (
        1,
        ["RoceSwitchWatchdogTripped"],
        ["RocePfcPauseHigh"],
        ["RocePfcTransmitPauseSaturated", "RoceAckTimeouts"],
    ),
    # it may be the culprit, so no storm mutes it; it is in the page of its cluster's storm and not another one
    "a tripped switch port of an unknown neighbour": (
        1,
        [
            *("RocePfcStormTransmitted, slow_receiver", "RocePfcStormFabricWide"),
            "RoceSwitchWatchdogTripped, without LLDP | instance=leaf7 | device=leaf7",
        ],
        [],
        ["RoceSwitchPausedBySwitch"],
    ),
    "lost packets of a priority group and headroom": (
        0,
        [],
        ["RoceSwitchHeadroomExhausted", "RoceSwitchHeadroomNearlyFull | priority_group=4"],
        ["RoceSwitchHeadroomNearlyFull"],
    ),
    "a port that is down and its queue pairs": (
        0,
        [],
        ["RocePortDown", "RoceOwnerQueuePairsInError | instance=h2"],
        ["RoceOwnerQueuePairsInError"],
    ),
    # another broken source does not explain a stale survey
    "a broken source and its stale survey": (
        0,
        [],
        [
            "RoceSourceBroken, of owners",
            "RoceSourceBroken | instance=h2",
            "RoceOwnerSurveyStale | instance=h2",
        ],
        ["RoceOwnerSurveyStale"],
    ),
    # a port that failed for another reason is notified, also where another port of the host is down
    "the verdict and what has an alert": (
        0,
        [],
        [
            *("RocePortDown", "RoceSamplerStuck | instance=h2", "RoceDeviceVanished | instance=h3"),
            *("RocePortFailed | port=2", "RocePortFailed | instance=h4"),
        ],
        ["RocePortFailed", "RocePortFailed | instance=h2", "RocePortFailed | instance=h3"],
    ),
}


def key(labels: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """An alert's identity."""
    return tuple(sorted(labels.items()))


@pytest.fixture(scope="module")
def incidents(alertmanager: Alertmanager) -> Alertmanager:
    """An Alertmanager that has received all incidents, each with a cluster of its name."""
    sent = [
        alert(words, name) for name, (_, *states) in INCIDENTS.items() for state in states for words in state
    ]
    alertmanager.ask("/api/v2/alerts", sent)
    return alertmanager


@pytest.mark.parametrize("name", INCIDENTS)
def test_an_incident_is_few_pages_that_name_the_cause(incidents: Alertmanager, name: str) -> None:
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


def alerts_in(messages: list[dict[str, Any]]) -> set[tuple[tuple[str, str], ...]]:
    """All alerts of these messages."""
    return {key(one["labels"]) for message in messages for one in message["alerts"]}


def test_a_page_names_the_faulty_object_and_ends(alertmanager: Alertmanager) -> None:
    page = alert("RocePfcStormTransmitted, slow_receiver", "one page")
    alertmanager.ask("/api/v2/alerts", [page])
    (sent,) = wait_until(lambda: alertmanager.hooks.of("pager", "one page"))
    said = sent["alerts"][0]["annotations"]
    for part in ("h1", "mlx5_0/1", "ens1f0np0", "priority 3", "slow_receiver"):
        assert part in said["summary"] + said["description"]
    alertmanager.ask("/api/v2/alerts", [page | {"endsAt": datetime.now(UTC).isoformat()}])
    wait_until(lambda: len(alertmanager.hooks.of("pager", "one page")) == 2)
    assert [one["status"] for one in alertmanager.hooks.of("pager", "one page")] == ["firing", "resolved"]


def test_a_silence_keeps_one_host_quiet_and_no_other(alertmanager: Alertmanager) -> None:
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
        alert(words, "silenced")
        for words in ("RocePacketLossCritical", "RocePacketLossCritical | instance=h2")
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
        ("RocePfcStormFabricWide", "page", "pager"),
        ("RocePacketLossCritical", "page", "pager"),
        ("RocePfcStormReceived", "ticket", "tickets"),
        ("RocePfcPauseElevated", "info", "nobody"),
        ("SomebodyElses", "page", "nobody"),
    ],
)
def test_pages_go_to_the_pager_tickets_to_the_tickets_and_the_rest_nowhere(
    name: str, severity: str, receiver: str
) -> None:
    place = f"--config.file={ALERTS / 'alertmanager.yml'}"
    command = ["amtool", "config", "routes", "test", place, f"alertname={name}", f"severity={severity}"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == receiver


@with_amtool
def test_amtool_accepts_the_configuration() -> None:
    command = ["amtool", "check-config", str(ALERTS / "alertmanager.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def patterns(rules: list[dict[str, Any]], side: str) -> set[str]:
    """The expressions over names of alerts in the rules' matchers."""
    matchers = [matcher for rule in rules for matcher in rule[side]]
    return {
        re.fullmatch(r'alertname =~? "(.*)"', text)[1] for text in matchers if text.startswith("alertname")
    }


def named(rules: list[dict[str, Any]], side: str) -> set[str]:
    """The alerts that these rules name."""
    return {name for name in RULES for pattern in patterns(rules, side) if re.fullmatch(pattern, name)}


INHIBITIONS = CONFIG["inhibit_rules"]
PACES = {
    rule["alert"]: seconds(group.get("interval", "0s"))
    for group in delivered()
    for rule in group["rules"]
    if "alert" in rule
}
"""Seconds between two evaluations of an alert; 0 for the evaluation_interval of Prometheus."""


def test_the_culprit_is_never_muted_and_every_alert_that_is_named_exists() -> None:
    assert not named(INHIBITIONS, "target_matchers") & set(STORMS)
    storms = CONFIG["route"]["routes"][0]["routes"][1]
    sides = patterns(INHIBITIONS, "source_matchers"), patterns(INHIBITIONS, "target_matchers")
    parts = {part for text in set().union(*sides, patterns([storms], "matchers")) for part in text.split("|")}
    assert not {part for part in parts if not any(re.fullmatch(part, name) for name in RULES)}


def test_an_alert_about_a_host_mutes_on_that_host_only() -> None:
    """An alert about a host as source without `instance` in `equal` would mute a whole cluster."""
    for rule in INHIBITIONS:
        sources = named([rule], "source_matchers")
        assert sources
        hosts = {name for name in sources if RULES[name]["labels"]["scope"] in {"host", "switch"}}
        assert "cluster" in rule["equal"]
        assert not hosts or "instance" in rule["equal"], hosts


def test_no_alert_is_muted_by_one_that_is_evaluated_less_often() -> None:
    """Otherwise the consequence would notify before its cause is known."""
    pairs = {
        (source, target)
        for rule in INHIBITIONS
        for source in named([rule], "source_matchers")
        for target in named([rule], "target_matchers")
    }
    assert len(pairs) > 20
    assert not {(source, target) for source, target in pairs if PACES[source] > PACES[target]}


def aftermath(rule: dict[str, Any]) -> int:
    """Seconds for which an alert may last after its cause is over: its longest window, and how long it is kept."""
    lasting = re.sub(r"min_over_time\([^)]*\)", "", rule["expr"])  # ends with the first low value
    windows = re.findall(r"(?:\[|:(?:ratio_)?(?:rate|increase))(\d+[smhd])", lasting)
    return max(map(seconds, windows), default=0) + seconds(rule.get("keep_firing_for", "0s"))


LASTS = {"RocePfcPauseBudgetBurnFast", "RocePfcPauseBudgetBurnSlow"}
"""Averages over hours: they are meant to last longer than a storm."""


@pytest.mark.parametrize("source", [*STORMS, "RoceSwitchWatchdogTripped"])
def test_alerts_muted_by_a_storm_end_before_the_storm(source: str) -> None:
    """Otherwise the consequences of the storm would page when it has ended."""
    inhibitions = [rule for rule in INHIBITIONS if source in named([rule], "source_matchers")]
    muted = named(inhibitions, "target_matchers") - LASTS
    loud = {name for name in muted if RULES[name]["labels"]["severity"] != "info"}
    assert len(loud) > 3
    # what is recorded may be as old as the pace of the alert that reads it
    ends = {name: aftermath(RULES[name]) + 2 * PACES[name] for name in loud}
    assert not {name: end for name, end in ends.items() if end > aftermath(RULES[source])}


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


def state(title: str, status: str = "firing") -> dict[str, Any]:
    return alert(title, "east") | {"status": status, "startsAt": "2026-01-02T03:04:05Z"}


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
    first = f"{culprit['summary']}\n{culprit['description']}\n{culprit['runbook_url']}"
    body = render("roce.text", state(FABRIC, "resolved"), state(CULPRIT))
    assert body == f"{first}\n\nResolved: {fabric['summary']}"
    assert render("roce.hosts", state(FABRIC), state(CULPRIT)) == "h1"
    html = render("roce.html", state(CULPRIT), kind="html")
    assert html.startswith("<!DOCTYPE html>")
    assert f'<a href="{culprit["runbook_url"]}">What to do</a> · since 2026-01-02 03:04:05 UTC' in html
    assert "<no value>" not in html
