"""The plan of a fleet: the arithmetic, the arrangement, and the tables of docs/operating.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fleet_plan import (
    DISK,
    FEW_SERVERS,
    INGESTION,
    MEMORY,
    QUERIES,
    RULES,
    SERVER_BUSY,
    SERVER_CORES,
    SERVER_MEMORY,
    TABLES,
    Fleet,
    FleetPlan,
    HostSize,
    amount,
    plan,
    plan_table,
    topology,
)

from roce_exporter.catalog.row import MetricSet

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
    assert found.rules_cores == pytest.approx(8 * RULES.of(lean) / 15)
    assert found.ingestion_cores == pytest.approx(0.4 * INGESTION.of(lean))


def test_half_the_scrapes_cost_half_but_memory() -> None:
    often, seldom = planned(), planned(interval=30.0)
    assert seldom.disk_bytes == often.disk_bytes / 2
    assert seldom.rules_cores == pytest.approx(often.rules_cores / 2)
    assert seldom.ingestion_cores == pytest.approx(often.ingestion_cores / 2)
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
    assert found == (name, servers, 3 if name == "store" else 0)


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


def test_the_table_has_a_line_per_fleet() -> None:
    lines = plan_table([planned(10), planned(100_000, MetricSet.FULL)]).splitlines()
    assert lines[2].startswith("| 10 | lean | 6 k |")
    assert lines[3].startswith("| 100,000 | full | 60 M |")
    assert len({line.count("|") for line in lines}) == 1


DOCUMENT = (Path(__file__).parents[2] / "docs/operating.md").read_text()
AMOUNT = re.compile(r"(?<![\w.])(\d[\d.,]*)(?: ([kMGT])(?![a-z]))?")
PREFIX = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


@pytest.mark.parametrize(
    "name", [name if name == "fleets" else pytest.param(name, marks=pytest.mark.ci) for name in TABLES]
)
def test_the_documented_tables_are_those_of_simulated_hosts(name: str) -> None:
    """Within a twentieth, because bytes of a scrape vary. `make generate` writes them."""
    (documented,) = re.findall(rf"<!-- {name} -->\n(.*?)<!-- end -->", DOCUMENT, re.DOTALL)
    lines = TABLES[name]().splitlines()
    assert len(lines) > 4
    for ours, theirs in zip(documented.splitlines(), lines, strict=True):
        assert are_alike(ours, theirs), (ours, theirs)


def are_alike(one: str, other: str) -> bool:
    """Whether two lines have the same words, and numbers within a twentieth of each other."""
    (numbers, words), (others, other_words) = amounts(one), amounts(other)
    return words == other_words and numbers == pytest.approx(others, rel=0.05, abs=0.02)


def amounts(line: str) -> tuple[list[float], str]:
    """The numbers of a line with their prefixes (`5.5 kB/s`: 5,500), and the rest of the line."""
    found = [float(number.replace(",", "")) * PREFIX[prefix] for number, prefix in AMOUNT.findall(line)]
    return found, AMOUNT.sub("N", line)
