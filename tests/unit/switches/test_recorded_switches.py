"""What holds for every recorded switch over HTTPS: readings and series as worked out by hand, names with rows, and replies gone wrong."""

from pathlib import Path

import pytest
from switch_recordings import assert_sound, damaged, read_recorded, recorded, series

from roce_exporter.switches.systems.cumulus import requests as cumulus
from roce_exporter.switches.systems.eos import requests as eos
from roce_exporter.switches.systems.nxos import requests as nxos
from roce_exporter.switches.systems.openconfig import requests as openconfig

GOLDEN = Path(__file__).parent / "golden"
MODULES = {
    "switch-cumulus": cumulus,
    "switch-eos": eos,
    "switch-nxos": nxos,
    "switch-nxos-cloudscale": nxos,
    "switch-openconfig": openconfig,
}
NXOS_EMPTY = {"ins_api": {"outputs": {"output": {"code": "200", "msg": "Success", "body": {}}}}}
NXOS_TEXT = {"ins_api": {"outputs": {"output": {"code": "200", "msg": "Success", "body": "text"}}}}
OTHER_FORMS = {
    "switch-cumulus": [[], "", "x", 1],
    "switch-nxos": [[], "", "x", 1, {}, {"ins_api": None}, {"imdata": {}}, NXOS_TEXT, NXOS_EMPTY],
}
SOURCES = [(folder, source) for folder in MODULES for source in sorted(recorded(folder))]


@pytest.mark.parametrize("priorities", ["pfc", "all"])
@pytest.mark.parametrize("folder", MODULES)
def test_readings_are_as_worked_out_by_hand(folder, priorities, request) -> None:
    """The golden files were compared with the recordings line by line."""
    found = read_recorded(MODULES[folder], folder, priorities)
    dialect = MODULES[folder].MODULE.dialect
    assert_sound(found, dialect)
    lines = [f"name {found.name}", *(f"{name} = {value}" for name, value in series(found, dialect).items())]
    lines += [f"{source}: {found.faults.get(source, 'up')}" for source in found.sources]
    place = GOLDEN / f"{folder}.pfc.txt"
    if priorities == "all":
        # Of all priorities, what those with PFC do not have.
        known = set(place.read_text().splitlines())
        lines = [line for line in lines if line not in known]
        place = GOLDEN / f"{folder}.all.txt"
    text = "".join(f"{line}\n" for line in lines)
    if request.config.getoption("--rewrite-golden") and text:
        place.write_text(text)
    assert (place.read_text() if place.exists() else "") == text


@pytest.mark.parametrize(("folder", "source"), SOURCES)
def test_no_damage_makes_a_reader_raise_or_costs_another_source(folder, source) -> None:
    replies = recorded(folder)
    others = set(replies) - {source, "lldp_neighbors"}
    for reply in damaged(replies[source]):
        found = read_recorded(MODULES[folder], folder, "all", **{source: reply})
        assert_sound(found, MODULES[folder].MODULE.dialect)
        assert others <= set(found.sources) - set(found.faults)


@pytest.mark.parametrize(("folder", "source"), [pair for pair in SOURCES if pair[0] in OTHER_FORMS])
def test_a_reply_of_another_form_is_a_fault(folder, source) -> None:
    for reply in OTHER_FORMS[folder]:
        found = read_recorded(MODULES[folder], folder, **{source: reply})
        if reply is not NXOS_EMPTY or source not in ("version", "lldp_neighbors", "transceivers"):
            assert list(found.faults) == [source], reply


FRAMES = {"pfc_receive_frames_total", "pfc_transmit_frames_total"}
JUNOS, NOKIA, DELL = ("pfc_dell", "pfc_srlinux"), ("pfc_dell",), ("pfc_srlinux",)


@pytest.mark.parametrize(
    ("without", "families"), [(JUNOS, set()), (NOKIA, FRAMES), (DELL, FRAMES | {"pfc_enabled"})]
)
def test_pfc_that_no_model_of_the_vendor_has_is_absent_and_not_zero(without, families) -> None:
    found = read_recorded(openconfig, "switch-openconfig", **dict.fromkeys(without, ...))
    assert {name.split()[0] for name in series(found, "openconfig") if name.startswith("pfc_")} == families
