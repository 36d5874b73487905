"""Names of Windows: known to `explain`, invisible to a Linux host, and each from a place that is stated.

The names below are typed from the public sources that `catalog/windows_evidence.py` lists, not recorded on a machine.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from roce_exporter.catalog import CATALOG, DIALECTS, INDEX
from roce_exporter.catalog.left_out import entry_of
from roce_exporter.catalog.windows_evidence import PUBLIC_SOURCES, UNPROVED, is_used, proof_of
from roce_exporter.catalog.windows_names import (
    PERFORMANCE_COUNTER,
    SEPARATOR,
    WINDOWS_DIALECTS,
    WINOF2,
    counter_path,
)
from roce_exporter.catalog.windows_settings import WINDOWS_SETTINGS
from roce_exporter.cli import main
from roce_exporter.introspection.windows_explain import OBJECTS, on_linux, row_of
from roce_exporter.sources.configuration_names import MLX5_DEBUGFS, OFED

SPELLINGS = [
    (row, spelling, raw)
    for row in CATALOG
    for spelling in row.spellings
    if spelling.dialect in WINDOWS_DIALECTS
    for raw in spelling.raw
]
PRINTED_BY_GET = [
    "DcqcnRPEnablePrio0",
    "DcqcnRPEnablePrio7",
    "DcqcnClampTgtRate",
    "DcqcnClampTgtRateAfterTimeInc",
    "DcqcnRpgTimeReset",
    "DcqcnRpgByteReset",
    "DcqcnRpgThreshold",
    "DcqcnRpgAiRate",
    "DcqcnRpgHaiRate",
    "DcqcnAlphaToRateShift",
    "DcqcnRpgMinDecFac",
    "DcqcnRpgMinRate",
    "DcqcnRateToSetOnFirstCnp",
    "DcqcnDceTcpG",
    "DcqcnDceTcpRtt",
    "DcqcnRateReduceMonitorPeriod",
    "DcqcnInitialAlphaValue",
    "DcqcnNPEnablePrio0",
    "DcqcnNPEnablePrio7",
    "DcqcnCnpDscp",
    "DcqcnCnp802pPrio",
    "DcqcnCnpPrioMode",
]
"""What `mlx5cmd -Qosconfig -Dcqcn -Get` prints, in the manual's example."""
KEYS = [
    "AsyncReceiveIndicate",
    "RfdReservationFactor",
    "DelayDropTimeout",
    "roce_mode",
    "DcqcnEnablePrio3",
    "DefaultUntaggedPriority",
    "fCnpDscp",
    "DcqcnDecTcpG",
    "TxUntagPriorityTag",
    "RxUntaggedMapToLossless",
    "RxUntaggedMapToLossles",
    "PriorityToDscpMappingTable_3",
    "DscpBasedEtsEnabled",
    "DscpBasedpfcEnabled",
    "DscpForGlobalFlowControl",
    "RxTrustedState",
    "DcbxMode",
    "DeviceRxStallTimeout",
    "DeviceRxStallWatermark",
    "TCHeadOfQueueLifeTimeLimit",
    "TCStallCount",
    "TCHeadOfQueueLifeTimeLimitEnable",
    "Willing",
    "LLDP_NB_DCBX_P1",
    "LLDP_NB_RX_MODE_P2",
    "LLDP_NB_TX_MODE_P1",
    "*NetworkDirect",
    "VlanID",
    "PriorityValue8021Action",
    "DSCPAction",
    "NetDirectPortMatchCondition",
    "BandwidthPercentage",
    "Algorithm",
    "*VxlanUDPPortNumber",
    "*EncapsulatedPacketTaskOffloadVxlan",
    "RroceDscpMarkPriorityFlowControl7",
    "Dropless_mode",
]
COUNTERS = {
    "Minor Stall Watermark Reached": "roce_pfc_watchdog_warnings_total",
    "Critical Stall Watermark Reached": "roce_pfc_watchdog_trips_total",
    "rcv pause duration": "roce_pfc_transmit_pause_seconds_total",
    "SENT PAUSE DURATION": "roce_pfc_receive_pause_seconds_total",
    "rcv pause frames": "roce_pfc_receive_frames_total",
    r"Mellanox WinOF-2 Port QoS\Bytes Sent": "roce_priority_transmit_bytes_total",
    r"\\host1\mellanox winof-2 port traffic(mellanox connectx-6 (dx) #2)\bytes sent": "roce_phy_transmit_bytes_total",
    r"\RDMA Activity(*)\RDMA Active Connections": "roce_connections",
    "Reaction Point - Current Number of Flows": "roce_rate_limited_flows",
    "cq overrun": "roce_devlink_vnic_cq_overrun_total",
}


@pytest.fixture
def laptop(tmp_path: Path) -> str:
    """A host without RDMA."""
    return f"--path.sysfs={tmp_path}"


@pytest.mark.parametrize("name", COUNTERS)
def test_a_counter_is_found_in_any_case_with_and_without_its_object(
    name: str, laptop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", name, laptop]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split(" ")[0] for line in shown if not line.startswith(" ")] == [COUNTERS[name]]


@pytest.mark.parametrize("name", [*PRINTED_BY_GET, *KEYS])
def test_a_setting_is_found_in_any_case(name: str, laptop: str, capsys: pytest.CaptureFixture[str]) -> None:
    for spelt in (name, name.upper()):
        assert main(["explain", spelt, laptop]) == 0
        shown = capsys.readouterr().out.splitlines()
        assert "(setting of WinOF-2, " in shown[0]
        assert any(line.strip().startswith(("on Linux: roce_", "no metric: ")) for line in shown)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "kbytes received/sec",
            "Mellanox WinOF-2 Port Traffic): not exported: a rate that Windows calculates",
        ),
        ("Received Pause Duration", "not exported: the names in the revision history"),
        (r"\Mellanox WinOF-2 Diagnostics Ext 1(x)\CM DREQ", "not exported: no documented unit or meaning"),
    ],
)
def test_a_counter_without_a_metric_has_its_reason(
    name: str, text: str, laptop: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", name, laptop]) == 0
    shown = capsys.readouterr().out
    assert text in shown
    assert "roce_devlink_info" not in shown


def test_an_unknown_name_gets_the_nearest_of_windows(laptop: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "Minor Stall Watermark", laptop]) == 1
    assert "similar names: Minor Stall Watermark Reached" in capsys.readouterr().err


def test_no_linux_host_searches_for_a_name_of_windows() -> None:
    """Neither a driver nor an unknown one has the dialect, and the source is read nowhere."""
    assert len(SPELLINGS) > 40
    for row, spelling, raw in SPELLINGS:
        assert spelling.source == PERFORMANCE_COUNTER
        for dialect in (*DIALECTS, ""):
            assert not INDEX.speaks(dialect, spelling)
            assert INDEX.claimed(dialect, PERFORMANCE_COUNTER, raw) is None
        assert INDEX.claimed(spelling.dialect, PERFORMANCE_COUNTER, raw) is row
    sources = Path(main.__code__.co_filename).parents[1] / "sources"
    assert not [file for file in sources.glob("*.py") if "windows" in file.read_text().casefold()]


def test_a_raw_name_is_an_object_and_a_counter() -> None:
    for _, _, raw in SPELLINGS:
        counter_object, counter = counter_path(raw)
        assert counter_object in OBJECTS
        assert counter
        assert SEPARATOR not in counter


def test_no_counter_has_a_metric_and_a_reason_against_it() -> None:
    assert not [raw for _, spelling, raw in SPELLINGS if entry_of(spelling.dialect, PERFORMANCE_COUNTER, raw)]


def test_windows_ignores_case_so_no_two_raw_names_differ_by_it() -> None:
    names = [raw.casefold() for _, _, raw in SPELLINGS]
    assert len(names) == len(set(names))


def test_every_public_source_is_of_a_spelling() -> None:
    known = {raw for _, _, raw in SPELLINGS}
    stated = [
        f"{one}{SEPARATOR}{counter}"
        for source in PUBLIC_SOURCES
        for one, counters in source.counters
        for counter in counters
    ]
    assert set(stated) <= known
    assert len(stated) == len(set(stated))
    assert {raw for raw in known if proof_of(raw) == UNPROVED} == known - set(stated)
    assert {counter_path(raw)[0] for raw in known if is_used(raw)} == {
        "Mellanox WinOF-2 Diagnostics",
        "Mellanox WinOF-2 Port QoS",
        "Mellanox WinOF-2 Port Traffic",
        "RDMA Activity",
    }


def test_pause_durations_are_swapped_and_pause_frames_are_not() -> None:
    by_counter = {
        counter_path(raw)[1]: row.name for row, spelling, raw in SPELLINGS if spelling.dialect == WINOF2
    }
    assert by_counter["Sent Pause Duration"] == "roce_pfc_receive_pause_seconds_total"
    assert by_counter["Rcv Pause Duration"] == "roce_pfc_transmit_pause_seconds_total"
    assert by_counter["Rcv Pause Frames"] == "roce_pfc_receive_frames_total"
    assert by_counter["Sent Pause Frames"] == "roce_pfc_transmit_frames_total"


def test_a_setting_names_the_row_of_linux() -> None:
    for setting in WINDOWS_SETTINGS:
        if setting.source:
            assert row_of(setting).name.startswith(
                ("roce_config_", "roce_dcqcn_", "roce_pfc_enabled", "roce_delay_")
            )
        assert on_linux(setting)


def test_a_parameter_has_the_name_that_linux_gives_it() -> None:
    """Both lists are typed by hand, so they could differ."""
    of_linux = {*MLX5_DEBUGFS.values(), *(name for files in OFED.values() for name in files.values())}
    of_windows = {one.raw for one in WINDOWS_SETTINGS if one.raw.count(".") == 2}
    assert of_windows
    assert of_windows <= of_linux
