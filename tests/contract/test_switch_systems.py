"""A switch system is complete: a folder with requests and a reader, recorded replies, rows, fixes and documentation."""

import re
from collections import Counter
from collections.abc import Callable
from importlib import import_module

import pytest
from package_modules import PACKAGE, ROOT
from sonic_redis import as_tables
from sonic_redis import recorded as recorded_tables
from switch_recordings import assert_sound, read_recorded

from roce_exporter.catalog import CATALOG, INDEX
from roce_exporter.catalog.row import ANY, Spelling
from roce_exporter.catalog.switch_systems import OPENCONFIG, SONIC, SWITCH_SYSTEMS, SYSTEMS
from roce_exporter.checks.switches.audit_switches import SWITCH_CHECKS
from roce_exporter.cli.otel_config import OTLP
from roce_exporter.switches.readings import SwitchReadings
from roce_exporter.switches.systems import load_module
from roce_exporter.switches.systems.eos import requests as eos
from roce_exporter.switches.systems.openconfig import requests as openconfig
from roce_exporter.switches.systems.sonic.read import read_tables

FOLDERS = sorted(place.parent.name for place in (PACKAGE / "switches/systems").glob("*/__init__.py"))
MODULES = {
    folder: [name for name, one in SYSTEMS.items() if one.file.startswith(f"{folder}.")] for folder in FOLDERS
}
MOST_WITHOUT_FIX = 4
"""Checks of a setting that one system does not have; the text for any system fits them."""


def recorded_readings(folder: str) -> SwitchReadings:
    """What is read from the recorded replies of a system, with all priorities."""
    if folder == SONIC:
        return read_tables([as_tables(recorded_tables(f"switch-{folder}"))], {}, "all")
    module = import_module(f"roce_exporter.switches.systems.{SYSTEMS[MODULES[folder][0]].file}")
    return read_recorded(module, f"switch-{folder}", "all")


def test_every_system_of_the_catalogue_has_a_folder() -> None:
    assert sorted(SWITCH_SYSTEMS) == FOLDERS


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_has_requests_in_the_table_of_systems_and_a_reader(folder) -> None:
    place = PACKAGE / "switches/systems" / folder
    files = sorted(f"{folder}.{path.stem}" for path in place.glob("*requests.py"))
    assert files == sorted(SYSTEMS[name].file for name in MODULES[folder])
    assert (place / "read.py").exists()
    for name in MODULES[folder]:
        module = load_module(name)
        assert (module.name, module.dialect) == (name, folder)
        assert SYSTEMS[name].schemes


@pytest.mark.parametrize("folder", FOLDERS)
def test_replies_are_recorded_and_every_raw_name_in_them_has_a_row(folder) -> None:
    found = recorded_readings(folder)
    assert_sound(found, folder)
    assert not found.faults
    assert len({name for reading in found.readings for name in reading.values}) > 10
    assert Counter(fact.row.name for fact in found.facts)["roce_switch_info"] == 1


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder != OPENCONFIG])
def test_the_check_of_switches_has_its_commands(folder) -> None:
    """Switches of any vendor have the text for any system."""
    assert len([check for check in SWITCH_CHECKS if folder not in check.fix]) <= MOST_WITHOUT_FIX


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_documents_have_each_module(name) -> None:
    assert re.search(rf"^\| `{name}` \|", (ROOT / "docs/switches.md").read_text(), re.MULTILINE)


DOCUMENT = ROOT / "docs/switches.md"
SONIC_REDIS_ONLY = ("voq_counters",)
PUBLIC = {
    ("eos", source)
    for source in (
        *("links", "error_counters", "discard_counters", "fec", "transceivers"),
        *("ecn_counters", "queue_drops"),
    )
} | {("nxos", "transceivers"), ("cumulus", "links"), ("cumulus", "phy_detail"), ("cumulus", "transceivers")}
"""Sources for which a reply of a switch is in public tests or printed in the vendor's documents; all others are constructed."""
GNMI = {**openconfig.PORT_PATHS, **eos.PATHS, "neighbors": ""}


def is_own(one: Spelling) -> bool:
    """Whether it is no row of OpenConfig's models, which are read over gNMI."""
    return one.dialect != ANY or one.source == "neighbors"


COLUMNS: dict[str, tuple[str, Callable[[Spelling], bool]]] = {
    "sonic": (SONIC, is_own),
    "sonic_gnmi": (SONIC, lambda one: is_own(one) and one.source not in SONIC_REDIS_ONLY),
    "nxos": ("nxos", is_own),
    "eos, eAPI": ("eos", lambda one: one.source in (*eos.COMMANDS, "neighbors")),
    "eos, gNMI": ("eos", lambda one: one.source in GNMI),
    "cumulus": ("cumulus", lambda one: is_own(one) and one.source != OTLP),
    "openconfig": (OPENCONFIG, lambda one: one.source in (*GNMI, *openconfig.VENDORS)),
}


def fact_table() -> str:
    """System x fact x proof, from the rows of the catalogue: `R` recorded or printed, `C` constructed."""
    recorded = "".join(place.read_text() for place in (ROOT / "tests/golden").glob("switch-sonic*.series"))
    lines = ["| fact | " + " | ".join(COLUMNS) + " |", "| --- |" + " :-: |" * len(COLUMNS)]
    for row in CATALOG:
        cells = []
        for dialect, has in COLUMNS.values():
            found = [one for one in row.spellings if INDEX.speaks(dialect, one) and has(one)]
            public = (
                f"{row.name}{{" in recorded
                if dialect == SONIC
                else any((dialect, one.source) in PUBLIC for one in found)
            )
            cells.append(("R" if public else "C") if found else "")
        if row.name.startswith("roce_switch_") and any(cells):
            lines.append(f"| {row.name.removeprefix('roce_switch_')} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def test_the_table_of_facts_is_that_of_the_catalogue(request) -> None:
    before, start, rest = DOCUMENT.read_text().partition("<!-- facts -->\n")
    table, end, after = rest.partition("<!-- end -->\n")
    if request.config.getoption("--rewrite-golden"):
        DOCUMENT.write_text(before + start + fact_table() + end + after)
    assert table == fact_table()
