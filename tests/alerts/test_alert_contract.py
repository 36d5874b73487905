"""Contracts of the rules, runbooks and thresholds with each other and with the catalogue. Each test lists what breaks it."""

import re
import tomllib
from collections import Counter
from collections.abc import Callable
from typing import Any

import yaml
from alert_checks import expectations
from alert_promtool import ALERTS, delivered, name_of
from alert_scenario import CASES, labels_of, metric

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.kernel_events import FAILED_EVENTS
from roce_exporter.checks.finding import Status
from roce_exporter.checks.health.causes import CAUSES
from roce_exporter.cli.flags import FLAGS

Rule = dict[str, Any]
RULES = [rule for group in delivered() for rule in group["rules"]]
ALERTING = {rule["alert"]: rule for rule in RULES if "alert" in rule}
RECORDED = {rule["record"] for rule in RULES if "record" in rule}
RUNBOOKS = {place.stem: place.read_text() for place in (ALERTS / "runbooks").glob("Roce*.md")}
WENT = yaml.safe_load((ALERTS / "went.yml").read_text())
THRESHOLDS = yaml.safe_load((ALERTS / "thresholds.yml").read_text())
README = (ALERTS / "README.md").read_text()
HEADINGS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]

LABELS = {row.name: row.labels for row in CATALOG} | {
    # made by prometheus-client, so without a row
    "roce_exporter_build_info": ("version",),
    "roce_exporter_kernel_info": ("release",),
    "roce_exporter_tls": (),
    # of kube-state-metrics
    "kube_pod_owner": ("namespace", "pod", "uid", "owner_kind", "owner_name", "owner_is_controller"),
}
TARGET = {"cluster", "namespace", "job", "instance", "node"}
OBJECT = {
    "host": r"\$labels\.node",
    "fabric": r"\$labels\.cluster",
    "switch": r"\$labels\.(device|switch)\b",
    "link": r"\$labels\.host .*\$labels\.switch_port",
    "wire": r"\$labels\.(source|instance)\b",
}
"""What an alert is about, and what its summary must therefore name."""
MADE = {
    *("le", "operation", "direction", "setting", "end", "speed", "threshold", "system"),
    *(
        "reason",
        "what",
        "host",
        "host_instance",
        "host_device",
        "host_port",
        "switch",
        "switch_instance",
        "switch_port",
    ),
    *("peer", "peer_port", "described", "resource", "workload", "signal", "url"),
    *("alertname", "alertstate", "alertgroup", "severity", "scope"),
}
"""Labels that rules make, and those that Prometheus and vmalert (`alertgroup`) give to ALERTS."""
LEVELS = {
    *("cluster", "job", "device", "netdev", "port", "priority", "direction", "setting", "link", "queue"),
    *("owner", "source", "workload", "host", "instance", "signal", "rack"),
}
"""What recorded names begin with."""


def family(name: str) -> str:
    """The metric that a name belongs to; for the series of a histogram, the histogram."""
    return name if name in LABELS else re.sub(r"_(bucket|count|sum)$", "", name)


def metrics_in(text: str) -> set[str]:
    """The metrics in a text; recorded names, which have colons, are not included."""
    named = re.findall(r"(?<![:\w/])roce_[a-z0-9_]+(?![:\w])", text)
    return {family(name) for name in named} - {"roce_exporter"}


def offenders(found: Callable[[Rule], object], rules: object = None) -> dict[str, object]:
    """What is wrong with which rules."""
    wrong = {name_of(rule): found(rule) for rule in (RULES if rules is None else ALERTING.values())}
    return {name: what for name, what in wrong.items() if what}


def test_every_metric_and_recorded_name_of_a_text_exists() -> None:
    texts = {name_of(rule): str(rule).replace("\\n", " ") for rule in RULES}
    texts |= {f"{name}.md": text for name, text in RUNBOOKS.items()}
    assert sum(len(metrics_in(text)) for text in texts.values()) > len(ALERTING)
    assert not {name: left for name, text in texts.items() if (left := metrics_in(text) - set(LABELS))}
    used = {name: set(re.findall(r"\b[a-z_]+:roce_\w+:\w+", text)) for name, text in texts.items()}
    assert not {name: left for name, names in used.items() if (left := names - RECORDED)}
    boards = " ".join(place.read_text() for place in ALERTS.parent.glob("dashboards/roce*"))
    read = set().union(*(names - {name} for name, names in used.items()))
    assert not {name for name in RECORDED - read if name not in boards}, (
        "used by no alert, rule, runbook or board"
    )


def test_the_tests_give_series_the_labels_that_the_exporter_gives_them() -> None:
    """A test with other labels would prove nothing. `netdev` of a source is empty for some sources, so it is missing."""
    seen, wrong = 0, []
    for case in CASES:
        for given in (case.series, case.background, *case.texts.values(), *case.silent.values()):
            for series in given.keys() - {"up"}:
                name, labels = metric(series), set(labels_of(series))
                wanted = set(LABELS[family(name)]) - (set() if name.endswith("_bucket") else {"le"})
                own = name.startswith("roce_exporter_")
                seen += 1
                if labels != wanted and not (own and labels in (wanted - {"netdev"}, {"source"})):
                    wrong.append((case.title, series))
    assert seen > 3 * len(ALERTING)
    assert not wrong


def test_every_alert_has_a_case_with_a_threshold_and_a_runbook() -> None:
    """RocePfcStormWithoutCulprit has a number of hosts as its threshold."""
    assert {case.alert for case in CASES} == set(ALERTING) == set(RUNBOOKS)
    below = {
        case.alert for case in CASES if case.few or any(one.below is not None for one in case.series.values())
    }
    assert below == set(ALERTING)
    titles = [f"{case.alert}, {name}" for case in CASES for name in case.texts] + [
        case.title for case in CASES
    ]
    assert sorted(expectations()) == sorted(titles), "run tests/alerts/write_fired.py"


def test_a_runbook_has_the_four_parts() -> None:
    """Its name is the title, each section has content, and there is a command or a query to continue with."""
    for name, text in RUNBOOKS.items():
        parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
        assert parts[0].startswith(f"# {name}\n"), name
        assert parts[1::2] == HEADINGS, name
        assert all(len(part.strip()) > 20 for part in parts[2::2]), name
        assert "`" in parts[6], f"{name}: Diagnosis names no command, metric or query"


def test_an_alert_has_what_alertmanager_and_people_need() -> None:
    """Severity, scope and texts that name the object; no changing labels, because each value would be a new alert."""
    for name, rule in ALERTING.items():
        texts = rule["annotations"]
        assert set(rule["labels"]) == {"severity", "scope"}, name
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}, name
        assert "$value" not in str(rule["labels"]), name
        assert set(texts) == {"summary", "description", "runbook_url", "dashboard_url"}, name
        assert texts["runbook_url"].endswith(f"/{name}.md"), name
        assert re.search(OBJECT[rule["labels"]["scope"]], texts["summary"]), name
        assert len(texts["summary"]) < 260, name


def test_a_number_in_a_text_is_formatted() -> None:
    """A rate or growth is not a whole number; only counts are shown unformatted."""
    raw = {name for name, rule in ALERTING.items() if "{{ $value }}" in str(rule["annotations"])}
    assert raw
    counted = {name for name in raw if re.search(r"count by|sum by", ALERTING[name]["expr"])}
    assert not {
        name for name in raw - counted if re.search(r"rate\(|increase\(|_ratio", ALERTING[name]["expr"])
    }


def test_a_noun_after_a_count_is_singular_for_one() -> None:
    texts = "".join(place.read_text() for place in (ALERTS / "rules").glob("*.yml"))
    assert len(re.findall(r"<<count>> (?:[A-Z]+ )?[a-z]+<<s>>", texts)) > 10
    assert re.findall(r"(?:<<count>>|\$value \}\}) (?:[A-Z]+ )?[a-z]+s\b.*", texts) == []


def test_few_alerts_page_and_no_ratio_of_cnps_does() -> None:
    """NICs of different generations count CNPs differently. A page that ends and begins again within minutes is one page."""
    pages = {name for name, rule in ALERTING.items() if rule["labels"]["severity"] == "critical"}
    assert len(ALERTING) <= 45
    assert 0 < len(pages) <= 6
    about_cnps = {name for name, rule in ALERTING.items() if "cnp" in rule["expr"]}
    assert about_cnps
    assert not pages & about_cnps
    assert {name for name in pages if "keep_firing_for" not in ALERTING[name]} == {"RoceClusterBlind"}


def test_an_alert_about_a_thing_has_its_node() -> None:
    """Alertmanager groups by it; alerts about a fabric have none."""
    without = {name for name, rule in ALERTING.items() if '"node", "$1", "named"' not in rule["expr"]}
    assert without == {name for name, rule in ALERTING.items() if rule["labels"]["scope"] == "fabric"}


def test_a_ticket_of_a_port_is_for_every_cause_that_has_no_alert_of_its_own() -> None:
    """A new cause is in it until someone says otherwise; those that are left out have an alert, or are no fault of the port."""
    (left_out,) = set(re.findall(r'reason!~"([^"]*)"', ALERTING["RocePortFaulty"]["expr"]))
    degraded = {cause.name for cause in CAUSES if cause.health in (Status.DEGRADED, Status.FAILED)}
    out = {name for name in degraded if re.fullmatch(left_out, name)}
    assert all(
        any(re.fullmatch(part, name) for name in {cause.name for cause in CAUSES})
        for part in left_out.split("|")
    )
    listed = set(
        re.findall(
            r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", RUNBOOKS["RocePortFaulty"], re.MULTILINE))
        )
    )
    assert not degraded - out - listed, "not in the table of the runbook"


def test_what_went_is_named_and_nothing_that_went_is_left() -> None:
    assert not set(WENT) & set(ALERTING)
    assert {word for one in WENT.values() for word in re.findall(r"\bRoce[A-Z]\w+", one["now"])} <= set(
        ALERTING
    )
    released = tomllib.loads((ALERTS.parent / "tests/upgrade/released.toml").read_text())
    assert set(released["alerts"]) <= set(WENT) | set(ALERTING)


def test_every_limit_is_read() -> None:
    """By a rule, a check or a board."""
    places = [
        *ALERTS.glob("rules/*.yml"),
        *ALERTS.parent.glob("roce_exporter/checks/health/*.*"),
        *ALERTS.parent.glob("dashboards/boards/*.py"),
    ]
    text = "".join(place.read_text() for place in places).replace(
        "pause_saturated_{way}", "pause_saturated_transmit pause_saturated_receive"
    )
    assert not {name for name in THRESHOLDS["limits"] if not re.search(rf"\b{name}\b", text)}


def test_rates_are_of_counters_and_only_of_those() -> None:
    """A bare counter is never compared with a threshold: the alert would never resolve."""

    def wrong(rule: Rule) -> set[str]:
        expression = re.sub(r"#.*", "", rule["expr"])
        rated = set(re.findall(r"(?:rate|increase)\(\s*(roce_\w+)", expression))
        gauges = {name for name in rated if not name.endswith(("_total", "_bucket", "_count"))}
        one_line = re.sub(r"\s+", " ", expression)
        return gauges | set(re.findall(r"(?<![:\w(\[])(roce_\w+_total)[^ \[]* (?:[<>]|[=!]=)", one_line))

    assert not offenders(wrong)


RENEWED = {"watermark": 60.0, "roce_switch_queue": 10.0, "roce_switch_buffer": 10.0, "roce_switch": 1.0}
"""Seconds in which SONiC, the slowest, refreshes metrics whose name has this text; of several texts the first counts."""


def test_windows_over_metrics_of_switches_hold_four_renewals() -> None:
    """A shorter window shows sawteeth, or misses the largest value."""
    window = re.compile(r"(roce_switch_\w+)(?:\{[^}]*\})?\[(\d+)([smhd])\]")
    windows = [found for rule in RULES for found in window.findall(rule["expr"])]
    assert len(windows) >= 10
    for name, length, unit in windows:
        renewed = next(seconds for text, seconds in RENEWED.items() if text in name)
        assert int(length) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[unit] >= 4 * renewed, name


def test_matched_labels_are_labels_of_ours() -> None:
    known = TARGET | {label for labels in LABELS.values() for label in labels} | MADE

    def unknown(rule: Rule) -> set[str]:
        groups = re.findall(r"\b(?:by|without|on|ignoring|group_left) \(([^)]*)\)", rule["expr"])
        return {label.strip() for group in groups for label in group.split(",") if label.strip()} - known

    assert not offenders(unknown)


def test_names_and_links_in_texts_lead_somewhere() -> None:
    """Alerts exist; links lead to a runbook or to a heading of one; flags are flags of the exporter."""
    texts = " ".join([*RUNBOOKS.values(), README])
    assert not set(re.findall(r"\bRo[cC]e[A-Z]\w+", texts)) - set(ALERTING)
    headings = {
        f"{name}.md#{heading.lower().replace(' ', '-')}"
        for name, text in RUNBOOKS.items()
        for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }
    links = {link for text in RUNBOOKS.values() for link in re.findall(r"\]\((\w+\.md(?:#[\w-]+)?)\)", text)}
    assert links
    assert not links - headings - {f"{name}.md" for name in RUNBOOKS} - {"switches.md"}
    flags = set(re.findall(r"(?<![\w-])--[a-z]+\.[a-z.-]+[a-z]", texts + str(RULES)))
    names = {flag.name for flag in FLAGS if not flag.instead}
    assert flags
    assert not {flag for flag in flags if flag not in names}


def test_alerts_on_a_port_whose_peer_is_the_question_lead_to_the_peer() -> None:
    """Counters of a host name no peer; packets do. Alerts on transport and CNPs of a port are such."""
    asked = re.compile(r"Roce(Cnp|Incast|PacketLoss|Peer|PortFaulty)")
    runbooks = {name: text for name, text in RUNBOOKS.items() if asked.match(name)}
    assert len(runbooks) >= 5
    for name, text in runbooks.items():
        diagnosis = text.split("## Diagnosis")[1].split("## Mitigation")[0]
        assert "RoceWireReceiverCongested.md#find-the-peer" in diagnosis, name


def test_the_ticket_of_a_port_explains_the_events_of_the_kernel_log() -> None:
    """Those of severity failed, from which the verdict has its reasons."""
    _, _, table = RUNBOOKS["RocePortFaulty"].partition("| event |")
    listed = "".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))
    assert sorted(re.findall(r"`(\w+)`", listed)) == sorted(FAILED_EVENTS)


def test_the_readmes_have_the_numbers_of_alerts() -> None:
    assert f"[{len(ALERTING)} alerts](" in (ALERTS.parent / "README.md").read_text()
    counted = Counter(rule["labels"]["severity"] for rule in ALERTING.values())
    said = dict(re.findall(r"^\| (critical|warning|info) \|.*\| (\d+) \|$", README, re.MULTILINE))
    assert said == {severity: str(count) for severity, count in counted.items()}


def test_recorded_names_are_level_metric_and_operations() -> None:
    """A record of a cluster keeps no label of a host."""
    operation = re.compile(
        r"((ratio_)?rate|increase)\d+[smhd]|count|sum|max|range|info|evidence|timestamp|bool|level|score"
    )
    for rule in RULES:
        if name := rule.get("record"):
            level, recorded, operations = name.split(":")
            assert set(level.split("_")) <= LEVELS, name
            assert recorded.startswith("roce_"), name
            assert operation.fullmatch(operations), name
            if "link" not in level and operations != "info":
                of_clusters = re.search(r" by \(cluster(?!, job, instance)", rule["expr"])
                assert level.startswith("cluster") == bool(of_clusters), name


def test_a_runbook_that_shuts_a_switch_port_has_the_commands() -> None:
    shut = re.compile(
        r"[Ss]hut (down )?(the |its |their )?(culprit's )?(switch )?ports?\b|[Ss]hut down (its|the)\b[^.]{0,30}\bports?\b"
    )
    found = {name for name, text in RUNBOOKS.items() if shut.search(text)}
    assert len(found) > 2
    assert {name for name in found if "switches.md" not in RUNBOOKS[name]} == set()


def test_the_pages_that_texts_name_are_served() -> None:
    """Of an exporter, or of the switch service."""
    sources = "".join(place.read_text() for place in (ALERTS.parent / "roce_exporter").rglob("*.py"))
    texts = " ".join([*RUNBOOKS.values(), *(str(rule.get("annotations", "")) for rule in RULES)])
    named = set(
        re.findall(r"(?<![\w./)\]-])(/(?:debug/)?[a-z][a-z-]*(?:\.json|-tree)|/debug/[a-z-]+)\b", texts)
    )
    assert len(named) > 2
    assert {one for one in named if f'"{one}"' not in sources} == set()
