"""The plan of a fleet: the arithmetic, the arrangement, and the tables of docs/operating.md."""

import re
from pathlib import Path

import pytest
from fleet_plan import FEW_SERVERS, SERVER_BUSY, SERVER_CORES, SERVER_MEMORY, TABLES, topology


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
def test_the_arrangement_has_room_for_memory_and_cores(memory, cores, busy, name, servers) -> None:
    found = topology(1200, memory, cores, busy)
    assert found == (name, servers, 3 if name == "store" else 0)


DOCUMENT = (Path(__file__).parents[2] / "docs/operating.md").read_text()
AMOUNT = re.compile(r"(?<![\w.])(\d[\d.,]*)(?: ([kMGT])(?![a-z]))?")
PREFIX = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


@pytest.mark.parametrize(
    "name", [name if name == "fleets" else pytest.param(name, marks=pytest.mark.ci) for name in TABLES]
)
def test_the_documented_tables_are_those_of_simulated_hosts(name) -> None:
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
