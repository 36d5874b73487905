"""The plan of a fleet: the arithmetic, the arrangement, and what is printed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from roce_exporter.catalog.row import MetricSet
from roce_exporter.introspection.fleet_factors import DISK, FACTORS, INGESTION, MEMORY, QUERIES, RULES
from roce_exporter.introspection.fleet_plan import (
    FEW_SERVERS,
    SERVER_BUSY,
    SERVER_CORES,
    SERVER_MEMORY,
    Fleet,
    HostSize,
    plan,
    topology,
)
from roce_exporter.introspection.fleet_report import amount, plan_json, plan_table, plan_text

if TYPE_CHECKING:
    from roce_exporter.introspection.fleet_plan import FleetPlan

DAY = 86400.0


def planned(hosts: int = 1000, metric_set: MetricSet = MetricSet.LEAN, interval: float = 15.0) -> FleetPlan:
    fleet = Fleet(hosts, 8, "mlx5", metric_set, interval, 15 * DAY)
    return plan(fleet, HostSize(series=600, gzipped=9000))


def test_each_need_is_its_factor_times_the_fleet() -> None:
    found = planned()
    lean = MetricSet.LEAN
    assert found.series == 600_000
    assert found.samples_per_second == 40_000
    assert found.memory_bytes == 600_000 * MEMORY.of(lean) * QUERIES.of(lean)
    assert found.disk_bytes == pytest.approx(40_000 * 15 * DAY * DISK.of(lean))
    assert found.network_bytes_per_second == 600_000
    assert found.rules_seconds == 8 * RULES.of(lean)
    assert found.rules_cores == pytest.approx(8 * RULES.of(lean) / 15)
    assert found.ingestion_cores == pytest.approx(0.4 * INGESTION.of(lean))
    assert found.cores == found.rules_cores + found.ingestion_cores


def test_half_the_scrapes_cost_half_but_memory() -> None:
    often, seldom = planned(), planned(interval=30.0)
    assert seldom.disk_bytes == often.disk_bytes / 2
    assert seldom.cores == pytest.approx(often.cores / 2)
    assert seldom.memory_bytes == often.memory_bytes


@pytest.mark.parametrize(
    ("memory", "cores", "busy", "name", "servers"),
    [
        (1e6, 0.1, 0.0, "one", 1),
        (1e6, 0.1, SERVER_BUSY, "one", 1),
        (1e6, 0.1, SERVER_BUSY * 2.5, "per_cluster", 3),
        (SERVER_MEMORY, SERVER_CORES, 0.0, "one", 1),
        (SERVER_MEMORY + 1, 1.0, 0.0, "per_cluster", 2),
        (1e6, SERVER_CORES * 1.01, 0.0, "per_cluster", 2),
        (SERVER_MEMORY * FEW_SERVERS, 1.0, 0.0, "per_cluster", FEW_SERVERS),
        (SERVER_MEMORY * FEW_SERVERS * 1.01, 1.0, 0.0, "store", FEW_SERVERS + 1),
    ],
)
def test_the_arrangement_has_room_for_memory_and_cores(
    memory: float, cores: float, busy: float, name: str, servers: int
) -> None:
    found = topology(1200, memory, cores, busy)
    assert (found.name, found.servers, found.agents) == (name, servers, 3 if name == "store" else 0)


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (4_834_000, "", "4.8 M"),
        (999.6, "", "1 k"),
        (123_456, "B", "123 kB"),
        (17, "", "17"),
        (1_234e12, "B", "1,230 TB"),
        (5e9, "B", "5 GB"),
    ],
)
def test_amounts_are_short(number: float, unit: str, text: str) -> None:
    assert amount(number, unit) == text


def test_the_text_the_json_and_the_table_have_the_same_numbers() -> None:
    found = planned()
    text = plan_text(found)
    assert text.startswith("1,000 hosts of 8 mlx5 ports, set lean, a scrape every 15 s, kept for 15 days\n")
    assert re.search(r"^series +600 k +600 per host, 75 per port", text, re.MULTILINE)
    assert "\nRecommended: " in text
    assert all(one.command in " ".join(text.split()) for one in FACTORS)
    assert plan_text(planned(1)).startswith("1 host of 8 mlx5 ports")
    document = json.loads(plan_json(found))
    assert (document["series"], document["memory_bytes"]) == (found.series, found.memory_bytes)
    assert document["topology"]["name"] == found.topology.name
    assert {one["command"] for one in document["factors"]} == {one.command for one in FACTORS}
    assert document["rivals"][0]["series"] > 0
    lines = plan_table([planned(10), planned(100_000, MetricSet.FULL)]).splitlines()
    assert lines[2].startswith("| 10 | lean | 6 k |")
    assert lines[3].startswith("| 100,000 | full | 60 M |")
    assert len({line.count("|") for line in lines}) == 1
