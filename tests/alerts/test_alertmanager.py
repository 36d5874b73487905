"""One storm is one page, the cause is never muted, and the texts read well: with the real Alertmanager."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from alert_cases import CASES
from alert_hooks import ALERTS
from alert_promtool import ANNOTATIONS, expected
from waiting import wait_until

if TYPE_CHECKING:
    from alert_hooks import Alertmanager

TEXTS = yaml.safe_load(ANNOTATIONS.read_text())
CONFIG = yaml.safe_load((ALERTS / "alertmanager.yml").read_text())
RULES = yaml.safe_load((ALERTS / "roce.rules.yml").read_text())
NAMES = {rule["alert"] for group in RULES["groups"] for rule in group["rules"] if "alert" in rule}
CULPRITS = {"RocePfcStormFabricWide", "RocePfcStormTransmitted", "RoceNicPauseWatchdogTripped"}

with_amtool = pytest.mark.usefixtures("amtool")


def alert(title: str, cluster: str, **labels: str) -> dict[str, Any]:
    """An alert as Prometheus would send it, with the labels and texts of a case."""
    case = next(case for case in CASES if case.title == title)
    fired = expected(case, TEXTS[title])
    return {
        "labels": {"alertname": case.alert} | fired["exp_labels"] | {"cluster": cluster} | labels,
        "annotations": fired["exp_annotations"],
        "startsAt": datetime.now(UTC).isoformat(),
    }


def over(alert: dict[str, Any]) -> dict[str, Any]:
    """The same alert, resolved."""
    return {**alert, "endsAt": (datetime.now(UTC) - timedelta(seconds=1)).isoformat()}


def settle(alertmanager: Alertmanager, cluster: str, active: set[str], muted: set[str]) -> None:
    """Wait until exactly `active` are active and `muted` are suppressed."""
    wait_until(
        lambda: (
            alertmanager.names(cluster, "active") == active
            and alertmanager.names(cluster, "suppressed") == muted
        ),
        120,
    )


def names_of(message: dict[str, Any]) -> set[str]:
    return {one["labels"]["alertname"] for one in message["alerts"]}


HOST_STORM = (
    "RocePfcStormTransmitted, slow_receiver",
    "RocePfcTransmitPauseSaturated",
    "RocePfcLongPause, transmitted",
    "RocePfcPauseHigh, transmitted",
    "RoceSlowReceiver",
    "RoceNicPauseWatchdogWarning",
    "RoceLosslessPriorityDrops",
    "RoceSwitchWatchdogTripped",
)


def test_a_storm_on_one_host_is_one_page_that_names_it_and_ends(alertmanager: Alertmanager) -> None:
    cluster = "one-host"
    alerts = [alert(title, cluster) for title in HOST_STORM]
    alertmanager.ask("/api/v2/alerts", alerts)
    muted = {one["labels"]["alertname"] for one in alerts} - {"RocePfcStormTransmitted"}
    settle(alertmanager, cluster, {"RocePfcStormTransmitted"}, muted)
    pages = wait_until(lambda: alertmanager.hooks.of("pager", cluster), 120)
    assert [names_of(page) for page in pages] == [{"RocePfcStormTransmitted"}]
    said = pages[0]["alerts"][0]["annotations"]
    for part in ("h1", "mlx5_0/1", "ens1f0np0", "priority 3", "slow_receiver"):
        assert part in said["summary"] + said["description"]
    alertmanager.ask("/api/v2/alerts", [over(one) for one in alerts])
    ended = wait_until(
        lambda: [page for page in alertmanager.hooks.of("pager", cluster) if page["status"] == "resolved"],
        120,
    )
    assert "RocePfcStormTransmitted" in names_of(ended[0])
    firing = [page for page in alertmanager.hooks.of("pager", cluster) if page["status"] == "firing"]
    assert len(firing) == 1
    assert not alertmanager.hooks.of("tickets", cluster)


def test_a_storm_across_hosts_is_one_page_next_to_that_of_the_culprit(alertmanager: Alertmanager) -> None:
    cluster = "many-hosts"
    victims = [
        alert(title, cluster, instance=host)
        for host in ("h2", "h3", "h4")
        for title in (
            "RocePfcStormReceived, paused_by_fabric",
            "RocePfcReceivePauseSaturated",
            "RoceAckTimeouts",
            "RocePacketLossCritical",
        )
    ]
    fabric = alert("RocePfcStormFabricWide, with the sending hosts", cluster)
    culprit = alert("RocePfcStormTransmitted, host_stopped", cluster)
    watchdog = alert("RoceNicPauseWatchdogTripped", cluster)
    alertmanager.ask("/api/v2/alerts", [*victims, fabric, culprit, watchdog])
    muted = {one["labels"]["alertname"] for one in victims}
    settle(alertmanager, cluster, CULPRITS, muted)
    pages = wait_until(lambda: alertmanager.hooks.of("pager", cluster), 120)
    assert [names_of(page) for page in pages] == [CULPRITS]
    assert not alertmanager.hooks.of("tickets", cluster)


def test_a_storm_mutes_nothing_in_another_cluster_or_on_another_host(alertmanager: Alertmanager) -> None:
    storm, elsewhere = "muting", "not-muted"
    alertmanager.ask(
        "/api/v2/alerts",
        [
            alert("RocePfcStormFabricWide", storm),
            alert("RocePfcStormReceived, paused_by_fabric", storm),
            alert("RocePfcStormReceived, paused_by_fabric", elsewhere),
            alert("RocePfcStormTransmitted, slow_receiver", elsewhere, instance="h9"),
            alert("RoceSlowReceiver", elsewhere),
        ],
    )
    settle(alertmanager, storm, {"RocePfcStormFabricWide"}, {"RocePfcStormReceived"})
    settle(
        alertmanager,
        elsewhere,
        {"RocePfcStormReceived", "RocePfcStormTransmitted", "RoceSlowReceiver"},
        set(),
    )


@pytest.mark.parametrize(
    "culprit",
    [
        "RocePfcStormTransmitted, slow_receiver",
        "RoceNicPauseWatchdogTripped",
        "RoceSwitchWatchdogTripped",
    ],
)
def test_a_stuck_receiver_is_one_page_and_drops_elsewhere_are_another(
    alertmanager: Alertmanager, culprit: str
) -> None:
    """A host that stops receiving drops packets as well. Drops at its other port and on another host have another cause."""
    cluster = f"drops-{culprit.partition(',')[0]}"
    drops = "RoceLosslessPriorityDrops"
    alerts = [
        alert(culprit, cluster),
        alert(drops, cluster),
        alert(drops, cluster, port="2"),
        alert(drops, cluster, instance="h2"),
    ]
    alertmanager.ask("/api/v2/alerts", alerts)
    wait_until(lambda: alertmanager.names(cluster, "suppressed") == {drops}, 120)
    pages = wait_until(lambda: _two(alertmanager.hooks.of("pager", cluster)), 120)
    found = sorted(
        (one["labels"]["alertname"], one["labels"]["instance"], one["labels"]["port"])
        for page in pages
        for one in page["alerts"]
    )
    assert found == sorted([(culprit.partition(",")[0], "h1", "1"), (drops, "h1", "2"), (drops, "h2", "1")])


def _two(pages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pages once there are two: one about the culprit, one about drops."""
    return pages if len(pages) >= 2 else []


def test_drops_without_a_storm_are_a_page(alertmanager: Alertmanager) -> None:
    """Also next to pause of that port: it is sent too late, or the priority of the drops has none."""
    cluster = "drops-alone"
    alerts = [alert("RoceLosslessPriorityDrops", cluster), alert("RocePfcPauseHigh, transmitted", cluster)]
    alertmanager.ask("/api/v2/alerts", alerts)
    pages = wait_until(lambda: alertmanager.hooks.of("pager", cluster), 120)
    assert [names_of(page) for page in pages] == [{"RoceLosslessPriorityDrops"}]


def test_a_sent_storm_does_not_mute_received_pause_of_its_port(alertmanager: Alertmanager) -> None:
    cluster = "directions"
    alertmanager.ask(
        "/api/v2/alerts",
        [
            alert("RocePfcStormTransmitted, slow_receiver", cluster),
            alert("RocePfcPauseHigh", cluster),
            alert("RocePfcLongPause, transmitted", cluster),
        ],
    )
    settle(alertmanager, cluster, {"RocePfcStormTransmitted", "RocePfcPauseHigh"}, {"RocePfcLongPause"})


def test_a_tripped_switch_port_is_the_page_where_its_host_has_none(alertmanager: Alertmanager) -> None:
    """The host's exporter lacks the fast loop, so that only averages are known: they are muted, and the host is named."""
    cluster = "no-fast-loop"
    alertmanager.ask(
        "/api/v2/alerts",
        [
            alert("RoceSwitchWatchdogTripped", cluster),
            alert("RocePfcTransmitPauseSaturated", cluster),
            alert("RoceAckTimeouts", cluster),
            alert("RocePfcPauseHigh", cluster),
        ],
    )
    muted = {"RocePfcTransmitPauseSaturated", "RoceAckTimeouts"}
    settle(alertmanager, cluster, {"RoceSwitchWatchdogTripped", "RocePfcPauseHigh"}, muted)
    pages = wait_until(lambda: alertmanager.hooks.of("pager", cluster), 120)
    assert [names_of(page) for page in pages] == [{"RoceSwitchWatchdogTripped"}]
    assert "host gpu-h1.example.com (ens1f0np0)" in pages[0]["alerts"][0]["annotations"]["summary"]


def test_a_tripped_port_of_an_unknown_neighbour_is_part_of_the_incident(alertmanager: Alertmanager) -> None:
    """It may be the culprit, so no storm mutes it; it is in the page of its cluster's storm and not another one."""
    cluster, unknown = "unknown-neighbour", "RoceSwitchWatchdogTripped, without LLDP"
    alertmanager.ask(
        "/api/v2/alerts",
        [
            alert("RocePfcStormTransmitted, slow_receiver", cluster),
            alert(unknown, cluster, instance="leaf7", device="leaf7"),
            alert("RoceSwitchPausedBySwitch", cluster),
            alert("RocePfcStormFabricWide", cluster),
        ],
    )
    storm = {"RocePfcStormFabricWide", "RocePfcStormTransmitted", "RoceSwitchWatchdogTripped"}
    settle(alertmanager, cluster, storm, {"RoceSwitchPausedBySwitch"})
    pages = wait_until(lambda: alertmanager.hooks.of("pager", cluster), 120)
    assert [names_of(page) for page in pages] == [storm]


def test_lost_packets_explain_a_nearly_full_headroom_of_their_group_only(alertmanager: Alertmanager) -> None:
    cluster = "headroom"
    other = alert("RoceSwitchHeadroomNearlyFull", cluster, priority_group="4")
    alertmanager.ask(
        "/api/v2/alerts",
        [
            alert("RoceSwitchHeadroomExhausted", cluster),
            alert("RoceSwitchHeadroomNearlyFull", cluster),
            other,
        ],
    )
    wait_until(lambda: alertmanager.names(cluster, "suppressed") == {"RoceSwitchHeadroomNearlyFull"}, 120)
    active = {
        (one["labels"]["alertname"], one["labels"]["priority_group"])
        for one in alertmanager.alerts(cluster)
        if one["status"]["state"] == "active"
    }
    assert active == {("RoceSwitchHeadroomExhausted", "3"), ("RoceSwitchHeadroomNearlyFull", "4")}


def test_a_port_that_is_down_explains_its_queue_pairs_and_a_broken_source_its_stale_survey(
    alertmanager: Alertmanager,
) -> None:
    """On that device only; another broken source does not explain a stale survey."""
    cluster = "owners"
    alerts = [
        alert("RocePortDown", cluster),
        alert("RoceOwnerQueuePairsInError", cluster),
        alert("RoceOwnerQueuePairsInError", cluster, instance="h2"),
        alert("RoceSourceBroken, of owners", cluster),
        alert("RoceOwnerSurveyStale", cluster),
        alert("RoceSourceBroken", cluster, instance="h2"),
        alert("RoceOwnerSurveyStale", cluster, instance="h2"),
    ]
    alertmanager.ask("/api/v2/alerts", alerts)
    wait_until(lambda: len(alertmanager.alerts(cluster)) == len(alerts), 120)
    muted = {
        (one["labels"]["alertname"], one["labels"]["instance"])
        for one in alertmanager.alerts(cluster)
        if one["status"]["state"] == "suppressed"
    }
    assert muted == {("RoceOwnerQueuePairsInError", "h1"), ("RoceOwnerSurveyStale", "h1")}


def test_the_verdict_is_no_second_notification_of_what_has_an_alert(alertmanager: Alertmanager) -> None:
    """A port that failed for another reason is notified, also where another port of the host is down."""
    cluster = "verdict"
    alerts = [
        alert("RocePortDown", cluster),
        alert("RocePortFailed", cluster),
        alert("RocePortFailed", cluster, port="2"),
        alert("RoceSamplerStuck", cluster, instance="h2"),
        alert("RocePortFailed", cluster, instance="h2"),
        alert("RoceDeviceVanished", cluster, instance="h3"),
        alert("RocePortFailed", cluster, instance="h3"),
        alert("RocePortFailed", cluster, instance="h4"),
    ]
    alertmanager.ask("/api/v2/alerts", alerts)
    wait_until(lambda: len(alertmanager.alerts(cluster)) == len(alerts), 120)
    active = {
        (one["labels"]["instance"], one["labels"]["port"])
        for one in alertmanager.alerts(cluster)
        if one["status"]["state"] == "active" and one["labels"]["alertname"] == "RocePortFailed"
    }
    assert active == {("h1", "2"), ("h4", "1")}


def test_a_silence_keeps_one_host_quiet_and_no_other(alertmanager: Alertmanager) -> None:
    cluster = "silenced"
    matchers = [
        {"name": name, "value": value, "isRegex": False, "isEqual": True}
        for name, value in (("cluster", cluster), ("instance", "h1"))
    ]
    now = datetime.now(UTC)
    alertmanager.ask(
        "/api/v2/silences",
        {
            "matchers": matchers,
            "startsAt": now.isoformat(),
            "endsAt": (now + timedelta(hours=1)).isoformat(),
            "createdBy": "a test",
            "comment": "maintenance",
        },
    )
    both = [alert("RocePacketLossCritical", cluster), alert("RocePacketLossCritical", cluster, instance="h2")]
    alertmanager.ask("/api/v2/alerts", both)
    wait_until(lambda: len(alertmanager.names(cluster, "suppressed")) == 1, 120)
    pages = wait_until(lambda: alertmanager.hooks.of("pager", cluster), 120)
    assert [[one["labels"]["instance"] for one in page["alerts"]] for page in pages] == [["h2"]]


ROUTES = [
    ("RocePfcStormFabricWide", "page", "pager"),
    ("RocePacketLossCritical", "page", "pager"),
    ("RocePfcStormReceived", "ticket", "tickets"),
    ("RoceSwitchWatchdogTripped", "page", "pager"),
    ("RocePauseCountersDisagree", "info", "nobody"),
    ("RocePfcPauseElevated", "info", "nobody"),
    ("SomebodyElses", "page", "nobody"),
]


@with_amtool
@pytest.mark.parametrize(("name", "severity", "receiver"), ROUTES)
def test_pages_go_to_the_pager_tickets_to_the_tickets_and_the_rest_nowhere(
    name: str, severity: str, receiver: str
) -> None:
    place = f"--config.file={ALERTS / 'alertmanager.yml'}"
    command = ["amtool", "config", "routes", "test", place, f"alertname={name}", f"severity={severity}"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == receiver


@with_amtool
def test_amtool_accepts_the_configuration() -> None:
    done = subprocess.run(
        ["amtool", "check-config", str(ALERTS / "alertmanager.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def expressions(rules: list[dict[str, Any]], side: str) -> list[str]:
    """The alert names in the rules' matchers, as regular expressions."""
    matchers = [matcher for rule in rules for matcher in rule[side]]
    return [
        re.fullmatch(r'alertname =~? "(.*)"', text)[1] for text in matchers if text.startswith("alertname")
    ]


def test_the_culprit_is_never_muted() -> None:
    targets = expressions(CONFIG["inhibit_rules"], "target_matchers")
    assert not {name for name in CULPRITS for target in targets if re.fullmatch(target, name)}


def test_every_alert_that_the_configuration_names_exists() -> None:
    storms = CONFIG["route"]["routes"][0]["routes"][1]
    parts = [
        part
        for text in (
            *expressions(CONFIG["inhibit_rules"], "source_matchers"),
            *expressions(CONFIG["inhibit_rules"], "target_matchers"),
            *expressions([storms], "matchers"),
        )
        for part in text.split("|")
    ]
    assert not {part for part in parts if not any(re.fullmatch(part, name) for name in NAMES)}


def test_an_alert_about_a_host_mutes_on_that_host_only() -> None:
    """An alert about a host as source without `instance` in `equal` would mute a whole cluster."""
    scopes = {
        rule["alert"]: rule["labels"]["scope"]
        for group in RULES["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }
    for rule in CONFIG["inhibit_rules"]:
        sources = expressions([rule], "source_matchers")
        hosts = [
            name
            for name in NAMES
            if any(re.fullmatch(source, name) for source in sources) and scopes[name] in {"host", "switch"}
        ]
        assert "cluster" in rule["equal"]
        assert not hosts or "instance" in rule["equal"], hosts


def minutes(duration: str) -> float:
    return int(duration[:-1]) * {"s": 1 / 60, "m": 1, "h": 60, "d": 1440}[duration[-1]]


PACES = {
    rule["alert"]: minutes(group.get("interval", "0s"))
    for group in RULES["groups"]
    for rule in group["rules"]
    if "alert" in rule
}
"""Minutes between two evaluations of an alert; 0 for the evaluation_interval of Prometheus."""


def test_no_alert_is_muted_by_one_that_is_evaluated_less_often() -> None:
    """Otherwise the consequence would notify before its cause is known."""
    pairs = {
        (source, target)
        for rule in CONFIG["inhibit_rules"]
        for source in named(expressions([rule], "source_matchers"))
        for target in named(expressions([rule], "target_matchers"))
    }
    assert len(pairs) > 50
    assert not {(source, target) for source, target in pairs if PACES[source] > PACES[target]}


def named(patterns: list[str]) -> set[str]:
    """The alerts that one of the expressions matches."""
    return {name for name in NAMES if any(re.fullmatch(pattern, name) for pattern in patterns)}


def aftermath(rule: dict[str, Any]) -> float:
    """Minutes for which an alert may last after its cause is over: its longest window, and how long it is kept."""
    lasting = re.sub(r"min_over_time\([^)]*\)", "", rule["expr"])  # ends with the first low value
    windows = re.findall(r"(?:\[|:(?:ratio_)?(?:rate|increase))(\d+[smhd])", lasting)
    return max(map(minutes, windows), default=0) + minutes(rule.get("keep_firing_for", "0s"))


LASTS = {"RocePfcPauseBudgetBurnFast", "RocePfcPauseBudgetBurnSlow"}
"""Averages over hours: they are meant to last longer than a storm."""


@pytest.mark.parametrize(
    "source",
    [
        "RocePfcStormFabricWide",
        "RocePfcStormTransmitted",
        "RoceNicPauseWatchdogTripped",
        "RoceSwitchWatchdogTripped",
    ],
)
def test_alerts_muted_by_a_storm_end_before_the_storm(source: str) -> None:
    """Otherwise the consequences of the storm would page when it has ended."""
    rules = {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"] if "alert" in rule}
    inhibitions = [
        rule
        for rule in CONFIG["inhibit_rules"]
        if any(re.fullmatch(names, source) for names in expressions([rule], "source_matchers"))
    ]
    targets = expressions(inhibitions, "target_matchers")
    muted = {name for name in NAMES - LASTS for target in targets if re.fullmatch(target, name)}
    assert len(muted) > 5
    kept = aftermath(rules[source])
    loud = {name for name in muted if rules[name]["labels"]["severity"] != "info"}
    # what is recorded may be as old as the pace of the alert that reads it
    ends = {name: aftermath(rules[name]) + 2 * PACES[name] for name in loud}
    assert not {name: end for name, end in ends.items() if end > kept}


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
        "amtool",
        "template",
        "render",
        f"--template.glob={ALERTS}/templates/*.tmpl",
        f'--template.text={{{{ template "{template}" . }}}}',
        f"--template.type={kind}",
        "--template.data=/dev/stdin",
    ]
    done = subprocess.run(command, input=json.dumps(data), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def state(title: str, status: str = "firing") -> dict[str, Any]:
    return {**alert(title, "east"), "status": status, "startsAt": "2026-01-02T03:04:05Z"}


FABRIC = "RocePfcStormFabricWide, with the sending hosts"
CULPRIT = "RocePfcStormTransmitted, host_stopped"


@with_amtool
def test_the_title_has_the_most_important_fact() -> None:
    assert render("roce.title", state(CULPRIT), state(FABRIC)) == f"{TEXTS[FABRIC]['summary']} (one of 2)"
    assert render("roce.title", state(CULPRIT)) == TEXTS[CULPRIT]["summary"]
    assert (
        render("roce.title", state(FABRIC, "resolved"), state(CULPRIT))
        == f"{TEXTS[CULPRIT]['summary']} (one of 2)"
    )
    assert render("roce.title", state(CULPRIT, "resolved")) == f"Resolved: {TEXTS[CULPRIT]['summary']}"


@with_amtool
def test_the_body_lists_firing_alerts_and_then_resolved_ones() -> None:
    culprit = TEXTS[CULPRIT]
    assert render("roce.text", state(FABRIC, "resolved"), state(CULPRIT)) == (
        f"{culprit['summary']}\n{culprit['description']}\n{culprit['runbook_url']}\n\nResolved: {TEXTS[FABRIC]['summary']}"
    )
    assert render("roce.hosts", state(FABRIC), state(CULPRIT)) == "h1"


@with_amtool
def test_the_mail_is_html_with_the_runbook_as_a_link() -> None:
    html = render("roce.html", state(CULPRIT), kind="html")
    assert html.startswith("<!DOCTYPE html>")
    assert f'<a href="{TEXTS[CULPRIT]["runbook_url"]}">What to do</a> · since 2026-01-02 03:04:05 UTC' in html
    assert "<no value>" not in html
