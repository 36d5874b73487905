"""Contracts of the rules, runbooks and thresholds with each other and with the catalogue."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from alert_cases import CASES
from alert_scenario import labels_of, metric

from roce_exporter.catalog import CATALOG
from roce_exporter.cli.options import COMMANDS, make_parser

ALERTS = Path(__file__).parents[2] / "alerts"
RULES = [
    rule
    for group in yaml.safe_load((ALERTS / "roce.rules.yml").read_text())["groups"]
    for rule in group["rules"]
]
ALERTING = {rule["alert"]: rule for rule in RULES if "alert" in rule}
RECORDED = {rule["record"] for rule in RULES if "record" in rule}
RUNBOOKS = {place.stem: place for place in (ALERTS / "runbooks").glob("*.md")}
HEADINGS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]

ALLOWED_UNTIL_BUILT: dict[str, tuple[str, ...]] = {}
"""Metrics in alerts that have no row yet, with their labels. Remove a metric when its row exists."""

ROWS = {row.name: row for row in CATALOG}
OWN = {"roce_exporter_build_info": ("version",), "roce_exporter_kernel_info": ("release",)}
"""The exporter's own metrics, made by prometheus-client and so without a row."""
KUBERNETES = {
    "kube_pod_owner": ("namespace", "pod", "uid", "owner_kind", "owner_name", "owner_is_controller")
}
"""Metrics of kube-state-metrics."""
LABELS = ALLOWED_UNTIL_BUILT | OWN | KUBERNETES | {row.name: row.labels for row in CATALOG}
TARGET = {"cluster", "job", "instance"}
OBJECT = {
    "host": r"\$labels\.instance",
    "fabric": r"\$labels\.cluster",
    "switch": r"\$labels\.(device|switch)\b",
    "link": r"\$labels\.host .*\$labels\.switch_port",
    "wire": r"\$labels\.(source|instance)\b",
}
"""What an alert is about, and what its summary must therefore name."""
MADE = {
    *("le", "operation", "direction", "setting", "end", "speed", "threshold", "system"),
    *("host", "host_instance", "host_device", "host_port", "switch", "switch_instance", "switch_port"),
    *("peer", "peer_port", "described"),
    *("resource", "workload"),
    *("alertname", "alertstate", "alertgroup", "severity", "scope"),
}
"""Labels that rules make, and those that Prometheus and vmalert (`alertgroup`) give to ALERTS."""


def family(name: str) -> str:
    """The metric that a name belongs to; for the series of a histogram, the histogram."""
    return name if name in LABELS else re.sub(r"_(bucket|count|sum)$", "", name)


def metrics_in(text: str) -> set[str]:
    """The metrics in a text; recorded names, which have colons, are not included."""
    return {family(name) for name in re.findall(r"(?<![:\w/])roce_[a-z0-9_]+(?![:\w])", text)} - {
        "roce_exporter"
    }


def test_existing_metrics_are_not_listed_as_planned() -> None:
    """Remove these from ALLOWED_UNTIL_BUILT."""
    assert not set(ALLOWED_UNTIL_BUILT) & set(ROWS)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("alert") or rule["record"])
def test_every_metric_of_a_rule_exists(rule: dict[str, object]) -> None:
    assert not metrics_in(str(rule)) - set(LABELS)


@pytest.mark.parametrize("place", RUNBOOKS.values(), ids=lambda place: place.stem)
def test_every_metric_of_a_runbook_exists(place: Path) -> None:
    assert not metrics_in(place.read_text()) - set(LABELS)


@pytest.mark.parametrize("text", [*map(str, RULES), *(place.read_text() for place in RUNBOOKS.values())])
def test_every_recorded_name_exists(text: str) -> None:
    assert not set(re.findall(r"\b[a-z_]+:roce_\w+:\w+", text.replace("\\n", " "))) - RECORDED


def test_every_recorded_name_is_used() -> None:
    """By an alert, another rule, or a person who follows a runbook."""
    texts = " ".join(
        [
            *(str(rule) for rule in RULES if "alert" in rule),
            *(rule["expr"] for rule in RULES),
            *(place.read_text() for place in RUNBOOKS.values()),
        ]
    )
    assert not {name for name in RECORDED if name not in texts}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_the_tests_give_series_the_labels_that_the_exporter_gives_them(case: object) -> None:
    """A test with other labels would prove nothing. `netdev` of a source is empty for some sources, so it is missing."""
    for series in {**case.series, **case.background}:
        if (name := metric(series)) == "up":
            continue
        given = set(labels_of(series))
        wanted = set(LABELS[family(name)]) - (set() if name.endswith("_bucket") else {"le"})
        assert given == wanted or (name.startswith("roce_exporter_") and given == wanted - {"netdev"}), series


def test_every_alert_has_a_case() -> None:
    assert {case.alert for case in CASES} == set(ALERTING)


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    assert set(RUNBOOKS) == set(ALERTING)


@pytest.mark.parametrize("place", RUNBOOKS.values(), ids=lambda place: place.stem)
def test_a_runbook_has_the_four_parts(place: Path) -> None:
    """Its name is the title, each section has content, and there is a command or a query to continue with."""
    text = place.read_text()
    assert text.startswith(f"# {place.stem}\n")
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    assert parts[1::2] == HEADINGS
    assert all(len(part.strip()) > 20 for part in parts[2::2])
    assert "`" in parts[6], "Diagnosis names no command, metric or query"


@pytest.mark.parametrize("rule", ALERTING.values(), ids=lambda rule: rule["alert"])
def test_an_alert_has_what_alertmanager_and_people_need(rule: dict[str, dict[str, str]]) -> None:
    """Severity, scope and three annotations; no changing labels, because each value would be a new alert."""
    assert set(rule["labels"]) == {"severity", "scope"}
    assert rule["labels"]["severity"] in {"page", "ticket", "info"}
    assert rule["labels"]["scope"] in OBJECT
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert rule["annotations"]["runbook_url"].endswith(f"/{rule['alert']}.md")
    assert "$value" not in str(rule["labels"])


@pytest.mark.parametrize("rule", ALERTING.values(), ids=lambda rule: rule["alert"])
def test_a_summary_names_the_faulty_object(rule: dict[str, dict[str, str]]) -> None:
    summary = rule["annotations"]["summary"]
    assert re.search(OBJECT[rule["labels"]["scope"]], summary)
    assert len(summary) < 260


@pytest.mark.parametrize("rule", ALERTING.values(), ids=lambda rule: rule["alert"])
def test_a_number_in_a_text_is_formatted(rule: dict[str, dict[str, str]]) -> None:
    """A rate or growth is not a whole number; only counts are shown unformatted."""
    raw = re.findall(r"\{\{ \$value \}\}", str(rule["annotations"]))
    assert not raw or not re.search(r"rate\(|increase\(|_ratio", rule["expr"])


def test_a_ratio_of_cnps_never_pages() -> None:
    """NICs of different generations count CNPs differently."""
    about_cnps = [rule for rule in ALERTING.values() if "cnp" in rule["expr"]]
    assert len(about_cnps) >= 3
    assert not [rule["alert"] for rule in about_cnps if rule["labels"]["severity"] == "page"]


def test_few_alerts_page() -> None:
    assert sorted(alert for alert, rule in ALERTING.items() if rule["labels"]["severity"] == "page") == [
        "RoceLosslessPriorityDrops",
        "RoceNicPauseWatchdogTripped",
        "RocePacketLossCritical",
        "RocePfcPauseBudgetBurnFast",
        "RocePfcStormFabricWide",
        "RocePfcStormTransmitted",
        "RocePfcTransmitPauseSaturated",
        "RoceSwitchWatchdogTripped",
    ]


def test_pages_do_not_flap() -> None:
    """A condition that ends and begins again within minutes is one page."""
    kept = {alert for alert, rule in ALERTING.items() if "keep_firing_for" in rule}
    assert {alert for alert, rule in ALERTING.items() if rule["labels"]["severity"] == "page"} <= kept


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("alert") or rule["record"])
def test_rates_are_of_counters_and_only_of_those(rule: dict[str, str]) -> None:
    """A bare counter is never compared with a threshold: the alert would never resolve."""
    expression = re.sub(r"#.*", "", rule["expr"])
    rated = set(re.findall(r"(?:rate|increase)\(\s*(roce_\w+)", expression))
    assert not {name for name in rated if not name.endswith(("_total", "_bucket", "_count"))}
    bare = set(re.findall(r"(?<![:\w])roce_\w+_total", expression))
    one_line = re.sub(r"\s+", " ", expression)
    compared = {name for name in bare if re.search(rf"(?<![\w(\[]){name}[^ \[]* (?:[<>]|[=!]=)", one_line)}
    # the first event of a counter that is served only above zero: its series is new
    first = {
        name for name in compared if re.search(rf"\({name}[^ ]* > 0\) unless \(?{name}[^ ]* offset", one_line)
    }
    assert not compared - first


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("alert") or rule["record"])
def test_events_of_sparse_counters_include_the_first(rule: dict[str, str]) -> None:
    """The series of such a counter begins with its first event, which `increase` does not see: write `<<events NAME>>`."""
    counted = set(re.findall(r"increase\(\s*(roce_\w+)", rule["expr"]))
    sparse = {name for name in counted if name in ROWS and ROWS[name].sparse}
    assert not {name for name in sparse if not re.search(rf"\({name}\S* unless {name}", rule["expr"])}


RENEWED = {"watermark": 60.0, "roce_switch_queue": 10.0, "roce_switch_buffer": 10.0, "roce_switch": 1.0}
"""Seconds in which SONiC, the slowest, refreshes metrics whose name has this text; of several texts the first counts."""
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def test_windows_over_metrics_of_switches_hold_four_renewals() -> None:
    """A shorter window shows sawteeth, or misses the largest value."""
    windows = [
        found
        for rule in RULES
        for found in re.findall(r"(roce_switch_\w+)(?:\{[^}]*\})?\[(\d+)([smhd])\]", rule["expr"])
    ]
    assert len(windows) >= 10
    for name, length, unit in windows:
        renewed = next(seconds for text, seconds in RENEWED.items() if text in name)
        assert int(length) * SECONDS[unit] >= 4 * renewed, name


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("alert") or rule["record"])
def test_matched_labels_are_labels_of_ours(rule: dict[str, str]) -> None:
    known = TARGET | {label for labels in LABELS.values() for label in labels} | MADE
    groups = re.findall(r"\b(?:by|without|on|ignoring|group_left) \(([^)]*)\)", rule["expr"])
    assert not {label.strip() for group in groups for label in group.split(",") if label.strip()} - known


def test_every_link_between_runbooks_leads_somewhere() -> None:
    """To a runbook, or to a heading of one."""
    links = {
        link
        for place in RUNBOOKS.values()
        for link in re.findall(r"\]\((\w+\.md(?:#[\w-]+)?)\)", place.read_text())
    }
    places = {f"{name}.md" for name in RUNBOOKS} | {
        f"{name}.md#{heading.lower().replace(' ', '-')}"
        for name, place in RUNBOOKS.items()
        for heading in re.findall(r"^#+ (.+)$", place.read_text(), re.MULTILINE)
    }
    assert links
    assert not links - places


PEERS = "RoceWireReceiverCongested.md#find-the-peer"


@pytest.mark.parametrize(
    "name",
    [
        *("RoceCnpIgnored", "RoceCnpDeliveryDeficit", "RoceEcnMarkRatioHigh", "RoceEcnMarkedButNoCnpSent"),
        *("RocePacketLossCritical", "RocePacketLossHigh", "RoceAckTimeouts", "RoceTransportRetriesExceeded"),
        *("RoceTrafficOutsideLosslessPriority", "RoceReceiverNotReady", "RoceIcrcErrors"),
    ],
)
def test_alerts_on_a_port_whose_peer_is_the_question_lead_to_the_peer(name: str) -> None:
    """Counters of a host name no peer; packets do."""
    diagnosis = RUNBOOKS[name].read_text().split("## Diagnosis")[1].split("## Mitigation")[0]
    assert PEERS in diagnosis


@pytest.mark.parametrize("place", [*RUNBOOKS.values(), ALERTS / "README.md"], ids=lambda place: place.stem)
def test_every_alert_that_a_text_names_exists(place: Path) -> None:
    assert not set(re.findall(r"\bRo[cC]e[A-Z]\w+", place.read_text())) - set(ALERTING)


def test_every_flag_of_the_exporter_that_a_text_names_exists() -> None:
    texts = " ".join(
        place.read_text() for place in [*RUNBOOKS.values(), ALERTS / "README.md", ALERTS / "roce.rules.yml"]
    )
    flags = set(re.findall(r"(?<![\w-])--[a-z]+\.[a-z.-]+[a-z]", texts))
    helps = "".join(
        action.choices[command].format_help()
        for action in make_parser()._actions
        if action.choices and "serve" in action.choices
        for command in COMMANDS
    )
    assert flags
    assert not {flag for flag in flags if flag not in helps}


def test_the_readme_has_the_number_of_alerts() -> None:
    """The README has the number of alerts of each severity."""
    counted = Counter(rule["labels"]["severity"] for rule in ALERTING.values())
    told = dict(
        re.findall(
            r"^\| (page|ticket|info) \|.*\| (\d+) \|$", (ALERTS / "README.md").read_text(), re.MULTILINE
        )
    )
    assert told == {severity: str(count) for severity, count in counted.items()}
    assert len(ALERTING) == 90, "the README says ninety"


def test_recorded_names_are_level_metric_and_operations() -> None:
    """A record of a cluster keeps no label of a host."""
    for rule in RULES:
        if name := rule.get("record"):
            level, recorded, operations = name.split(":")
            assert set(level.split("_")) <= {
                "cluster",
                "job",
                "device",
                "netdev",
                "port",
                "priority",
                "direction",
                "setting",
                "link",
                "queue",
                "owner",
                "source",
                "workload",
            }
            assert recorded.startswith("roce_")
            assert re.fullmatch(
                r"((ratio_)?rate|increase)\d+[smhd]|count|sum|range|info|evidence|timestamp|bool", operations
            )
            if "link" not in level and operations != "info":
                of_clusters = re.search(r" by \(cluster(?!, job, instance)", rule["expr"])
                assert level.startswith("cluster") == bool(of_clusters), name
