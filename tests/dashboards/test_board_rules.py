"""What makes a board mislead at 3 a.m., or cost too much: each rule with a board that it rejects."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator

import pytest
import yaml
from boards.written import seen_sum
from dashboard_contents import DASHBOARDS, FOLDER, ROOT, ROWS, Json, panels, read, row_of

from roce_exporter.catalog.row import HISTOGRAM

HOSTS, PORTS, SCRAPE, RANGE, STEPS = 2000, 8, 15, 6 * 3600, 360
SAMPLES_PER_SECOND = 10_000_000
"""What Prometheus 2.42 reached on a synthetic fleet of 200 hosts."""
LIMIT = 2.0
"""Seconds of processor time of one query at 2,000 hosts, as the board opens."""
FANOUT = {
    "priority": 2, "direction": 2, "owner": 5, "state": 1.5, "type": 1.5, "parameter": 19, "dscp": 2, "buffer": 2, "traffic_class": 2, "index": 4,
    "lane": 4, "le": 12, "source": 3, "destination": 20, "peer": 5, "check": 20, "queue": 2, "priority_group": 2, "event": 4, "vf": 0.5, "field": 4,
}  # fmt: skip
"""About how many series per port a label adds: rounded from a simulated host with the set standard, some assumed."""
PER_HOST = {"source": 25, "check": 40}
SELECTOR = re.compile(r"([a-zA-Z_][\w:]*)?\{([^{}]*)\}\s*(\[[^\]]*\])?(\s*@ end\(\))?")
SPARSE = re.compile("elevated|storms|seen|odd_host|discards|trips|firing|unfit|not_measured")
"""Recorded series that exist only where there is a fault."""
BOARDS = {place.stem: read(place) for place in DASHBOARDS}
SCOPES = set(re.findall(r"^ *scope: *(\w+)", (ROOT / "alerts/roce.rules.yml").read_text(), re.MULTILINE))


def variables(board: Json) -> dict[str, bool]:
    """Each variable, and whether it selects everything when the board opens."""
    listed = board.get("templating", {}).get("list", [])
    return {one["name"]: bool(one.get("includeAll")) for one in listed if one["type"] != "datasource"}


def required(board: Json) -> set[str]:
    """The variables that choose one thing and that a reader sets."""
    listed = board.get("templating", {}).get("list", [])
    several = ("includeAll", "multi")
    return {
        one["name"]
        for one in listed
        if one["type"] == "query" and not any(map(one.get, several)) and one.get("hide") != 2
    }


def series(metric: str, matchers: str, opened: dict[str, bool]) -> float:
    """About how many series a selector reads."""
    if metric.startswith("cluster"):
        return 20
    narrow = re.findall(r'(\w+)=~?"\$\{?(\w+)', matchers)
    one_host = any(
        not opened.get(variable, True)
        for label, variable in narrow
        if label in {"instance", "host", "switch", "device"}
    )
    hosts = 1 if one_host else HOSTS
    if ":" in metric:
        return hosts * PORTS * (0.1 if SPARSE.search(metric) else 1)
    row = row_of(metric)
    if metric.startswith(("roce_wire", "roce_switch", "kube_")):
        return 64 * (20 if hosts > 1 else 1)
    labels = ({*row.labels} | ({"le"} if row.kind == HISTOGRAM else set())) if row else set()
    if not labels & {"device", "port", "netdev"}:
        return hosts * max([1, *(PER_HOST.get(label, 1) for label in labels)])
    found = float(hosts * PORTS)
    for label in labels:
        found *= 1 if re.search(rf'\b{label}="[^"]', matchers) else FANOUT.get(label, 1)
    return found


def seconds(expr: str, *, instant: bool, opened: dict[str, bool]) -> float:
    """About how much processor time a query takes over six hours."""
    total = 0.0
    for metric, matchers, window, at_end in SELECTOR.findall(expr):
        several = re.search(r'__name__=~?"([^"]*)"', matchers)
        for name in [metric] if metric else re.findall(r"\w+", several[1] if several else ""):
            count = series(name, matchers, opened)
            if "$__range" in window:
                total += count * RANGE / SCRAPE
            elif re.search(r"\[\d+d", window):
                total += count * 86400 / SCRAPE
            elif instant or at_end:
                # functions on labels cost 80 times what a sample costs
                total += count * (80 if re.search("label_|count_values", expr) else 20 if window else 10)
            else:
                total += count * max(RANGE / SCRAPE if window else 0, STEPS)
    return total * (2 if re.search(r"\[(\$__range|\d+d):", expr) else 1) / SAMPLES_PER_SECOND


def shown(panel: Json) -> set[str]:
    """The columns of a table; none of other panels."""
    for change in panel.get("transformations", []):
        if change["id"] == "filterFieldsByName":
            return {*change["options"]["include"]["names"]}
    return set()


def links(panel: Json) -> Iterator[str]:
    """Where a panel's fields lead."""
    for override in panel["fieldConfig"]["overrides"]:
        for one in override["properties"]:
            if one["id"] == "links":
                yield from (link["url"] for link in one["value"])


def alerts(panel: Json) -> bool:
    """Whether it is a table of alerts."""
    return panel["type"] == "table" and any("ALERTS" in one["expr"] for one in panel["targets"])


def costs(board: Json) -> Iterator[str]:
    """A query takes more than two seconds of processor time at 2,000 hosts of 8 ports."""
    for panel in panels(board):
        for one in panel["targets"]:
            took = seconds(one["expr"], instant=bool(one.get("instant")), opened=variables(board))
            if took > LIMIT:
                yield f"{panel['title']}: about {took:.0f} s"


def dilutes(board: Json) -> Iterator[str]:
    """State is a mean over the range: five minutes at 50 % are a seventieth of six hours, and look clear."""
    for panel in panels(board):
        if re.search(
            r"\b(rate|avg_over_time)\([\w:]+(?:\{[^{}]*\})?\[\$\{?__range", json.dumps(panel["targets"])
        ):
            yield panel["title"]


def hides_the_cause(board: Json) -> Iterator[str]:
    """A table of alerts keeps the newest, but the cause began first; or it has no device and port."""
    for panel in panels(board):
        if alerts(panel):
            newest = any(
                re.search(r"topk\(\s*\d+\s*,\s*\(?\s*ALERTS", one["expr"]) for one in panel["targets"]
            )
            if newest or not {"device", "port"} <= shown(panel):
                yield panel["title"]


def opens_empty(board: Json) -> Iterator[str]:
    """A link passes what the target lacks, leaves open what it requires, or leads every alert to a board of hosts."""
    urls = [(link["title"], link["url"]) for link in board.get("links", [])]
    for panel in panels(board):
        urls += [(panel["title"], url) for url in links(panel)]
        if alerts(panel) and len(SCOPES) > 1 and any("/d/roce-host" in url for url in links(panel)):
            yield panel["title"]
    for title, url in urls:
        target = re.search(r"/d/([\w-]+)", url)
        if target and target[1] not in BOARDS:
            yield title
        elif target:
            passed = {*re.findall(r"[?&]var-(\w+)=", url), *re.findall(r"\$\{(\w+):queryparam\}", url)}
            there = BOARDS[target[1]]
            lacks = "${__data.fields." in url and required(there) - passed
            if passed - {"datasource", *variables(there)} or lacks:
                yield title


def leads_to_an_example(board: Json) -> Iterator[str]:
    """A link to an address that nobody serves."""
    yield from (panel["title"] for panel in panels(board) for url in links(panel) if "example.com" in url)


def a_board(
    kind: str, *exprs: str, columns: tuple[str, ...] = (), url: str = "", all_hosts: bool = True
) -> Json:
    """A board with one panel, whose variable `instance` selects all hosts or one."""
    override: Json = {
        "matcher": {"options": "instance"},
        "properties": [{"id": "links", "value": [{"url": url}]}],
    }
    return {
        "templating": {"list": [{"name": "instance", "type": "query", "includeAll": all_hosts}]},
        "panels": [
            {
                "type": kind,
                "title": "One",
                "targets": [{"expr": one, "instant": kind == "table"} for one in exprs],
                "transformations": [{"id": "filterFieldsByName", "options": {"include": {"names": columns}}}],
                "fieldConfig": {"overrides": [override] if url else []},
            }
        ],
    }


COUNTER = 'rate(roce_owner_cnp_handled_total{instance=~"$instance"}[$__rate_interval])'
FIRING = 'topk(25, ALERTS_FOR_STATE{scope="host"})'
FAULTS: list[tuple[Callable[[Json], Iterator[str]], Json]] = [
    (costs, a_board("timeseries", COUNTER)),
    (dilutes, a_board("table", "max(rate(roce_pfc_receive_pause_seconds_total{}[$__range]))")),
    (hides_the_cause, a_board("table", FIRING, columns=("device", "port"))),
    (hides_the_cause, a_board("table", "bottomk(25, ALERTS_FOR_STATE{})", columns=("instance",))),
    (opens_empty, a_board("table", FIRING, url="/d/roce-host/roce-host")),
    (opens_empty, a_board("table", "up", url="/d/roce-fleet/roce-fleet?var-instance=a")),
    (opens_empty, a_board("table", "up", url="/d/roce-port/x?var-instance=${__data.fields.instance}")),
    (leads_to_an_example, a_board("table", "up", url="https://runbooks.example.com/roce/One.md")),
]


@pytest.mark.parametrize(("rule", "fault"), FAULTS, ids=lambda one: getattr(one, "__name__", ""))
def test_every_board_keeps_the_rule_and_its_fault_is_found(
    rule: Callable[[Json], Iterator[str]], fault: Json
) -> None:
    assert {uid: found for uid, board in BOARDS.items() if (found := sorted({*rule(board)}))} == {}, (
        rule.__doc__
    )
    assert list(rule(fault)), rule.__doc__


def test_one_host_is_cheap_where_all_are_not() -> None:
    assert list(costs(a_board("timeseries", COUNTER, all_hosts=False))) == []


def test_every_scope_of_an_alert_has_a_board() -> None:
    """The link of the fleet's table reads the scope."""
    rules = yaml.safe_load((ROOT / "alerts/roce.rules.yml").read_text())["groups"]
    scopes = {rule["labels"]["scope"] for group in rules for rule in group["rules"] if "alert" in rule}
    from boards.fleet_where import BOARDS as TARGETS  # noqa: PLC0415 - another meaning of the name

    assert {one for scope in TARGETS for one in scope.split("|")} == scopes
    assert {*TARGETS.values()} <= BOARDS.keys()
    assert "scope" not in ROWS


# ---- pictures

MANIFEST: dict[str, dict[str, str]] = json.loads(
    (FOLDER / "pictures/manifest.json").read_text(encoding="utf-8")
)


def test_every_picture_is_of_its_board_as_it_is() -> None:
    """Draw them again with `make pictures`."""
    assert {place.name for place in (FOLDER / "pictures").glob("*.png")} == MANIFEST.keys()
    of_boards = {name: entry for name, entry in MANIFEST.items() if "board" in entry}
    assert {entry["board"] for entry in of_boards.values()} == {f"{uid}.json" for uid in BOARDS}
    old = [
        name
        for name, entry in of_boards.items()
        if entry["seen"] != seen_sum((FOLDER / entry["board"]).read_text())
    ]
    assert old == []


@pytest.mark.parametrize("name", sorted(MANIFEST))
def test_a_picture_is_the_one_that_was_drawn(name: str) -> None:
    drawn = (FOLDER / "pictures" / name).read_bytes()
    assert hashlib.sha256(drawn).hexdigest() == MANIFEST[name]["picture"]


@pytest.mark.nightly
def test_the_texts_of_the_boards_are_those_of_the_manifest() -> None:
    """The file's sum, descriptions included."""
    sums = {
        name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()
        for name in (f"{uid}.json" for uid in BOARDS)
    }
    assert {entry["board"]: entry["sha256"] for entry in MANIFEST.values() if "board" in entry} == sums
