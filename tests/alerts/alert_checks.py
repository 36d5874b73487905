"""What must be true of each case: in which clusters its alert fires, when, with which labels and texts, and that it ends."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml
from alert_promtool import EVERY, Fired, Groups, Labels, delivered, fired, history, needed, rules_of_cases
from alert_scenario import CASES, ELSEWHERE, LASTS, SILENT, Case, Variant, input_series, labels_of, variants

FIRED = Path(__file__).with_name("fired.yml")
"""When each case fires, in minutes after the fault began, and its texts; `write_fired.py` writes it."""
NO_TEXT = ("NaN", "Inf", "{{", "<<", "<no value>", "%!", " 0 ", "  ")
"""What no text has: malformed numbers and unfilled templates."""


@cache
def expectations() -> dict[str, dict[str, Any]]:
    """The content of fired.yml."""
    return yaml.safe_load(FIRED.read_text())


def pace(case: Case) -> int:
    """Seconds between two evaluations of a case."""
    return max(EVERY, case.step)


def run_case(folder: Path, case: Case, groups: Groups | None = None) -> Fired:
    """What fires in the clusters of a case."""
    series = (one for variant in variants(case) for one in input_series(case, variant))
    test = history(series, case.minutes, case.step, pace(case))
    read = {"eval_time": f"{case.read_at}m", "alertname": case.alert, "exp_alerts": []}
    wanted = needed({case.alert}, rules_of_cases() if groups is None else groups)
    return fired(folder, wanted, test | {"alert_rule_test": [read]}, pace(case))


def observed(case: Case, found: Fired) -> Iterator[tuple[str, dict[str, Any]]]:
    """The entries of fired.yml for a case, from what fired now."""
    for title, variant in _with_texts(case):
        ((labels, spans),) = of_cluster(found, case, variant).items()
        texts = found.texts[labels | {("alertname", case.alert)}]
        texts = {
            key: texts[key].replace(f"cluster {variant.cluster}", "cluster east")
            for key in ("summary", "description")
        }
        if variant.cluster != "east":
            yield title, texts
            continue
        fires = ", ".join(f"{begin // 60 - case.lead} to {end // 60 - case.lead}" for begin, end in spans)
        yield title, {"minutes": fires, **texts}


def _with_texts(case: Case) -> Iterator[tuple[str, Variant]]:
    """The clusters of a case whose texts fired.yml has, with their titles."""
    for variant in variants(case):
        if variant.cluster == "east":
            yield case.title, variant
        elif variant.cluster in case.texts:
            yield f"{case.alert}, {variant.cluster}", variant


def of_cluster(found: Fired, case: Case, variant: Variant) -> dict[Labels, list[tuple[int, int]]]:
    """What the case's alert did in a cluster."""
    return {
        labels: spans
        for labels, spans in found.of(case.alert).items()
        if dict(labels).get("cluster", "") == variant.cluster
    }


def labels_wanted(case: Case, host: str, cluster: str) -> dict[str, str]:
    """The labels with which a case fires."""
    rules = (rule for group in delivered() for rule in group["rules"])
    labels = {"cluster": cluster} | next(rule["labels"] for rule in rules if rule.get("alert") == case.alert)
    if not case.fabric:
        labels |= {"job": "roce", "instance": host, "node": host}
    return {
        key: text for key, text in (labels | labels_of(case.labels.replace("<host>", host))).items() if text
    }


def problems(case: Case, found: Fired) -> Iterator[str]:
    """How what fired differs from what must."""
    clusters = {variant.cluster for variant in variants(case)}
    for labels in found.of(case.alert):
        if dict(labels).get("cluster", "") not in clusters:
            yield f"{case.title}: fires with the labels {dict(labels)}"
    for variant in variants(case):
        for problem in _problems(case, variant, found):
            yield f"{case.title}: {variant.cluster or 'no label cluster'}: {problem}"


def _problems(case: Case, variant: Variant, found: Fired) -> Iterator[str]:
    spans = of_cluster(found, case, variant)
    wanted = frozenset(labels_wanted(case, "h1", variant.cluster).items())
    if variant.expected == SILENT:
        if spans:
            yield f"must not fire: {_shown(spans)}"
    elif variant.expected == ELSEWHERE:
        if wanted in spans:
            yield f"must not fire with {dict(wanted)}"
    elif set(spans) != {wanted}:
        yield f"must fire with {dict(wanted)}: {_shown(spans) or 'does not fire'}"
    elif variant.expected == LASTS:
        if not any(begin <= case.read_at * 60 <= end for begin, end in spans[wanted]):
            yield f"must fire when the fault ends: {_shown(spans)}"
    else:
        yield from _problems_of_times(case, variant, spans[wanted])
        yield from _problems_of_texts(case, variant, found.texts.get(wanted | {("alertname", case.alert)}))


def _problems_of_times(case: Case, variant: Variant, spans: list[tuple[int, int]]) -> Iterator[str]:
    minutes = [at // 60 - case.lead for span in spans for at in span]
    known = [int(word) for word in re.findall(r"-?\d+", expectations()[case.title]["minutes"])]
    if minutes != known:
        yield f"must fire in minutes {known}: {minutes}"


def _problems_of_texts(case: Case, variant: Variant, texts: dict[str, str] | None) -> Iterator[str]:
    if texts is None:
        yield "does not fire when its text is read"
        return
    labels = labels_wanted(case, "h1", variant.cluster)
    if texts["dashboard_url"] != board_of(labels):
        yield f"dashboard_url must be {board_of(labels)}: {texts['dashboard_url']}"
    title = f"{case.alert}, {variant.cluster}" if variant.cluster in case.texts else case.title
    named = f"cluster {variant.cluster}" if variant.cluster else "the fleet"
    for key in ("summary", "description"):
        said = expectations()[title][key]
        if texts[key] != said.replace("cluster east", named):
            yield f"{key} must be {said!r}: {texts[key]!r}"
        if any(hole in said for hole in NO_TEXT):
            yield f"{key} has a malformed number or an unfilled template: {said!r}"


def _shown(spans: dict[Labels, list[tuple[int, int]]]) -> str:
    return "; ".join(
        f"{dict(labels)} {[(one // 60, other // 60) for one, other in times]}"
        for labels, times in spans.items()
    )


def as_sent(title: str) -> dict[str, dict[str, str]]:
    """Labels and annotations of the alert of a title of fired.yml, as Prometheus sends them to Alertmanager."""
    (case,) = (one for one in CASES if title in {one.title, *(f"{one.alert}, {name}" for name in one.texts)})
    texts = {key: expectations()[title][key] for key in ("summary", "description")}
    labels = labels_wanted(case, "h1", "east")
    links = {"runbook_url": f"http://h1:10123/runbooks/{case.alert}.md", "dashboard_url": board_of(labels)}
    return {"labels": {"alertname": case.alert} | labels, "annotations": texts | links}


def board_of(labels: Mapping[str, str]) -> str:
    """Where the board of an alert is: of the port, the host, the link, the fabric or the captures, with what the alert names."""
    match labels["scope"]:
        case "host":
            board = "roce-port" if "port" in labels else "roce-host"
            names = ("cluster", "job", "instance", "device", "port", "priority")
        case "link" | "switch":
            board, names = "roce-link", ("cluster", "host", "netdev", "switch", "switch_port")
            if labels["scope"] == "switch":
                place = {
                    "switch": labels.get("switch", labels.get("device", "")),
                    "switch_port": labels.get("switch_port", labels.get("port", "")),
                }
                labels = {"cluster": labels.get("cluster", "")} | place
        case scope:
            board, names = {"fabric": "roce-fleet", "wire": "roce-exporter"}[scope], ("cluster",)
    chosen = {"var-datasource": "default"} | {
        f"var-{name}": text for name in names if (text := labels.get(name))
    }
    return f"http://localhost:3000/d/{board}/roce?{urlencode(chosen)}"
