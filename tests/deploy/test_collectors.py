"""Agents and collectors between exporter and store: every series arrives with its name, its labels and its value.

The configurations are those of deploy/prometheus and deploy/opentelemetry. What other settings of the collector and of Prometheus'
OTLP receiver would change is tested too, so that each option of these files has its reason.
"""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from deploy_exposition import (
    CATALOGUE,
    CLUSTER,
    ODD,
    STORM,
    Page,
    catalogue,
    frozen,
    served_by_daemons,
)
from deploy_paths import (
    by_otlp,
    by_remote_write,
    collector_program,
    otlp_config,
    otlp_prometheus,
    receiving_prometheus,
)
from deploy_storm import SECOND, SEEDS, all_ready, host
from deploy_tools import ROOT, wait_until
from deploy_ways import OF_THE_SCRAPE, PLACES, WAYS, Arrived, bounds_as_numbers, name_of
from promql_uses import of_grafana, of_template, uses

from roce_exporter.catalog import CATALOG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.nightly

RULES = (ROOT / "alerts/roce.rules.yml", ROOT / "dashboards/roce-dashboards.rules.yml")


@pytest.fixture(scope="session")
def pages() -> dict[str, Page]:
    """What is served."""
    return {CATALOGUE: catalogue(), **served_by_daemons()}


@pytest.fixture(scope="module", params=WAYS)
def arrived(
    request: pytest.FixtureRequest, pages: dict[str, Page], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Arrived]:
    """One way after the other."""
    way = WAYS[request.param]
    with (
        frozen(pages) as given,
        way.start(tmp_path_factory.mktemp(request.param), given.targets()) as store,
    ):
        found = Arrived(way, store, given)
        found.wait()
        yield found


@pytest.mark.parametrize("name", PLACES)
def test_every_series_arrives_with_its_name_labels_and_value(arrived: Arrived, name: str) -> None:
    """And nothing else but what the scrape and the way are known to add."""
    found = bounds_as_numbers(arrived.of(name))
    expected = bounds_as_numbers(arrived.expected(name))
    assert len(expected) > 100
    added = {name_of(labels) for labels in found.keys() - expected.keys()}
    assert {one for one in added if not OF_THE_SCRAPE.fullmatch(one)} == arrived.way.extra
    assert {labels: found.get(labels) for labels in expected} == pytest.approx(
        expected, rel=arrived.way.apart, abs=0
    )


def test_letters_outside_ascii_and_quotes_arrive(arrived: Arrived) -> None:
    assert any(ODD in dict(labels).values() for labels in arrived.of(CATALOGUE))


def asked_names() -> set[str]:
    """Our metrics that rules, their texts and dashboards read by name."""
    groups = [group for place in RULES for group in yaml.safe_load(place.read_text())["groups"]]
    rules = [rule for group in groups for rule in group["rules"]]
    texts = [text for rule in rules for text in rule.get("annotations", {}).values()]
    queries = [rule["expr"] for rule in rules]
    queries += [query for text in texts for query in of_template(text)]
    boards = [json.loads(place.read_text()) for place in sorted((ROOT / "dashboards").glob("roce-*.json"))]
    queries += [of_grafana(query) for board in boards for query in board_queries(board)]
    found = {use.name for query in dict.fromkeys(queries) for use in uses(query)}
    return {name for name in found if name.startswith("roce_")}


def board_queries(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(expression := part.get("expr"), str):
            yield expression
        part = list(part.values())
    for one in part if isinstance(part, list) else ():
        yield from board_queries(one)


def test_every_name_that_rules_and_dashboards_read_arrives(arrived: Arrived) -> None:
    asked = asked_names()
    assert len(asked) > 150
    assert asked - {name_of(labels) for name in PLACES for labels in arrived.of(name)} == set()


def literal_bounds() -> set[str]:
    """The bounds of buckets that rules and dashboards select by their text."""
    texts = [place.read_text() for place in (*RULES, *(ROOT / "dashboards").glob("roce-*.json"))]
    return {found for text in texts for found in re.findall(r'\ble=\\?"([^"\\]*)', text)}


def test_selected_bounds_have_one_spelling_everywhere(arrived: Arrived) -> None:
    """A whole number would be spelt 1 or 1.0, depending on the way."""
    bounds = {dict(labels).get("le") for labels in arrived.of(STORM)}
    assert literal_bounds() >= {"0.5"}
    assert literal_bounds() <= bounds


def test_a_series_that_is_not_served_any_more_ends(arrived: Arrived) -> None:
    """By a staleness marker: without it the store would repeat the last value, here for an hour."""
    gone = "roce_port_up"
    name = f'{gone}{{instance="{CATALOGUE}"}}'
    assert arrived.store.values(name)
    before = arrived.pages.pages[CATALOGUE]
    arrived.pages.pages[CATALOGUE] = catalogue(without=gone)
    wait_until(lambda: not arrived.store.values(name), f"{gone} ends")
    assert len(arrived.of(CATALOGUE)) > len(CATALOG)
    arrived.pages.pages[CATALOGUE] = before
    wait_until(lambda: arrived.store.values(name), f"{gone} is back")


# ---- the rules at the end


@pytest.mark.parametrize("way", [by_remote_write, by_otlp], ids=["remote-write", "otlp"])
def test_a_storm_behind_a_collector_fires_its_alert(tmp_path: Path, way: Callable[..., Any]) -> None:
    """Simulated host, collector, Prometheus with all our rules, evaluated every second to shorten the test."""
    collector_program()
    if way is by_otlp:
        otlp_prometheus()
    rules = tmp_path / "rules.yml"
    groups = yaml.safe_load(RULES[0].read_text())["groups"]
    rules.write_text(yaml.safe_dump({"groups": [group | {"interval": "1s"} for group in groups]}))
    config = (otlp_config() if way is by_otlp else {}) | {"rule_files": [str(rules)]}
    storming = host(tmp_path, "pfc-storm", SEEDS[SECOND])
    with ExitStack() as stack:
        stack.enter_context(all_ready(storming))
        store = stack.enter_context(receiving_prometheus(tmp_path, config))
        label = {"instance": "gpu-r07-n01", "cluster": CLUSTER}
        targets = [{"targets": [f"127.0.0.1:{storming.port}"], "labels": label}]
        stack.enter_context(way(tmp_path, targets, store))
        firing = 'ALERTS{alertname="RocePfcStormTransmitted",alertstate="firing"}'
        wait_until(lambda: store.values(firing), "the storm's alert fires")
        (alert,) = store.values(firing)
    assert dict(alert).items() >= {**label, "job": "roce", "role": "gpu", "rack": "r07"}.items()
