"""`explain` works without the hardware: by pattern, with the reasons of every driver, the names of Windows, and the nearest otherwise.

It also names the reason why a metric has no series on this host, and why /metrics does not show one that it has.

The names of Windows are typed from the public sources that `catalog/tables/windows.txt` lists, not recorded on a machine.
"""

import json
from pathlib import Path

import pytest
from recorded import recording

from roce_exporter.catalog import CATALOG, DIALECTS, INDEX
from roce_exporter.catalog.left_out import entry_of
from roce_exporter.catalog.windows import (
    OBJECTS,
    PERFORMANCE_COUNTER,
    PUBLIC_SOURCES,
    SEPARATOR,
    UNPROVED,
    WINDOWS_DIALECTS,
    WINDOWS_SETTINGS,
    WINOF2,
    counter_path,
    proof_of,
)
from roce_exporter.cli import main
from roce_exporter.host.sources.configuration import MLX5_DEBUGFS, OFED
from roce_exporter.introspection.explain import NEAREST, HostStates, nearest, on_linux, row_of, why_missing
from roce_exporter.model import SourceState

SPELLINGS = [
    (row, spelling, raw)
    for row in CATALOG
    for spelling in row.spellings
    if spelling.dialect in WINDOWS_DIALECTS
    for raw in spelling.raw
]
RAW = {raw for _, _, raw in SPELLINGS}


class Explained:
    """What `explain` prints on a host without RDMA."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.host = f"--path.sysfs={folder}"
        self._capsys = capsys

    def __call__(self, name: str, status: int = 0, host: str = "") -> list[str]:
        assert main(["explain", name, host or self.host]) == status
        printed = self._capsys.readouterr()
        return (printed.err if status else printed.out).splitlines()


@pytest.fixture
def explained(tmp_path, capsys) -> Explained:
    return Explained(tmp_path, capsys)


@pytest.mark.parametrize(
    ("name", "metric", "label"),
    [
        ("rx_prio3_pause_duration", "roce_pfc_receive_pause_seconds_total", "priority 3"),
        ("rx_err_lane_2_phy", "roce_phy_lane_errors_total", "lane 2"),
        ("hc_tc5_rx_pause_phy", "roce_pfc_receive_frames_total", "priority 5"),
        ("ets_transmit_bandwidth_6", "roce_config_ets_transmit_bandwidth_ratio", "traffic_class 6"),
        ("rx_discard_packets_cos4", "roce_queue_receive_discards_total", "queue 4"),
    ],
)
def test_a_priority_a_lane_or_a_class_in_a_name_is_recognised(explained, name, metric, label) -> None:
    lines = explained(name)
    assert [line.split(" ")[0] for line in lines if not line.startswith(" ")] == [metric]
    assert f"  {name}: {label}" in lines
    assert (
        "  no series now: no RDMA device is visible, or all are excluded; `roce-exporter check setup` says why"
        in lines
    )


def test_an_exact_name_is_explained_without_a_placeholder(explained) -> None:
    lines = explained("np_cnp_pkts")
    assert lines[0] == "roce_cnp_sent_total (counter, packets, stable)"
    assert {"  in the sets lean, standard, full", "  bnxt_re: np_cnp_pkts in hw_counters, 64 bits"} <= set(
        lines
    )
    assert not [line for line in lines if "np_cnp_pkts: " in line]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("rp_cnp_ignored", "(bnxt_re, hw_counters): not exported: declared by the driver but never written"),
        ("rx_runt_bytes", "(bnxt_re, ethtool): not exported: bytes of the short frames"),
        ("[3]: rx_discards", "(any driver, ethtool): not exported: one queue of the kernel's own traffic"),
        (
            "req_cqe_error",
            "(bnxt_re, hw_counters): not exported: a sum, calculated by the driver, of counters",
        ),
        (
            "kbytes received/sec",
            "Mellanox WinOF-2 Port Traffic): not exported: a rate that Windows calculates",
        ),
        ("Received Pause Duration", "not exported: the names in the revision history"),
        (r"\Mellanox WinOF-2 Diagnostics Ext 1(x)\CM DREQ", "not exported: no documented unit or meaning"),
    ],
)
def test_names_left_out_are_explained_without_their_driver(explained, name, reason) -> None:
    assert [line for line in explained(name) if reason in line]


def test_on_the_nic_only_its_own_reasons_are_printed(explained) -> None:
    lines = explained("rp_cnp_ignored", host=f"--host.recording={recording('drift-bnxt-own')}")
    assert sum("not exported" in line for line in lines) == 1


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("rx_prio3_pause_duratoin", "rx_prio{priority}_pause_duration"),
        ("np_cnp_snt", "np_cnp_sent"),
        ("roce_cnp_send_total", "roce_cnp_sent_total"),
        ("RX_CRC_ERRORS_PHY", "rx_crc_errors_phy"),
        ("Minor Stall Watermark", "Minor Stall Watermark Reached"),
        ("xyzzy", ""),
    ],
)
def test_the_nearest_names_are_suggested(explained, name, near) -> None:
    (line,) = explained(name, 1)
    known = f"roce-exporter: {name}: not a known metric, raw counter name, counter of this host or alert"
    assert line.startswith(f"{known}; similar names: ") if near else line == known
    assert near in line
    assert 1 < len(nearest("rx_prio3_pause")) <= NEAREST


# Windows


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("Minor Stall Watermark Reached", "roce_pfc_watchdog_warnings_total"),
        ("rcv pause duration", "roce_pfc_transmit_pause_seconds_total"),
        ("SENT PAUSE DURATION", "roce_pfc_receive_pause_seconds_total"),
        (r"Mellanox WinOF-2 Port QoS\Bytes Sent", "roce_priority_transmit_bytes_total"),
        (
            r"\\host1\mellanox winof-2 port traffic(mellanox connectx-6 (dx) #2)\bytes sent",
            "roce_phy_transmit_bytes_total",
        ),
        (r"\RDMA Activity(*)\RDMA Active Connections", "roce_connections"),
        ("cq overrun", "roce_devlink_vnic_cq_overrun_total"),
    ],
)
def test_a_counter_of_windows_is_found_in_any_case_with_and_without_its_object(
    explained, name, metric
) -> None:
    assert [line.split(" ")[0] for line in explained(name) if not line.startswith(" ")] == [metric]


PRINTED = (
    "DcqcnRPEnablePrio0 DcqcnRPEnablePrio7 DcqcnClampTgtRate DcqcnRpgTimeReset DcqcnRpgAiRate DcqcnDceTcpG"
    " DcqcnInitialAlphaValue DcqcnNPEnablePrio7 DcqcnCnpDscp DcqcnCnpPrioMode"
)
"""What `mlx5cmd -Qosconfig -Dcqcn -Get` prints, in the manual's example, in part."""
KEYS = (
    "AsyncReceiveIndicate roce_mode DcqcnEnablePrio3 fCnpDscp DcqcnDecTcpG RxUntaggedMapToLossles"
    " PriorityToDscpMappingTable_3 RxTrustedState DeviceRxStallTimeout TCStallCount LLDP_NB_RX_MODE_P2"
    " *NetworkDirect BandwidthPercentage RroceDscpMarkPriorityFlowControl7 Dropless_mode"
)


@pytest.mark.parametrize("name", f"{PRINTED} {KEYS}".split())
def test_a_setting_of_windows_is_found_in_any_case(explained, name) -> None:
    lines = explained(name)
    assert "(setting of WinOF-2, " in lines[0]
    assert any(line.strip().startswith(("on Linux: roce_", "no metric: ")) for line in lines)
    assert explained(name.upper())[:2] == lines[:2]


def test_no_linux_host_searches_for_a_name_of_windows() -> None:
    """Neither a driver nor an unknown one has the dialect, and the source is read nowhere."""
    assert len(SPELLINGS) > 40
    for row, spelling, raw in SPELLINGS:
        assert spelling.source == PERFORMANCE_COUNTER
        for dialect in (*DIALECTS, ""):
            assert not INDEX.speaks(dialect, spelling)
            assert INDEX.claimed(dialect, PERFORMANCE_COUNTER, raw) is None
        assert INDEX.claimed(spelling.dialect, PERFORMANCE_COUNTER, raw) is row
        counter_object, counter = counter_path(raw)
        assert counter_object in OBJECTS
        assert counter
        assert SEPARATOR not in counter
        assert not entry_of(spelling.dialect, PERFORMANCE_COUNTER, raw), "a metric and a reason against it"
    assert len({raw.casefold() for raw in RAW}) == len(SPELLINGS), "Windows ignores case"
    sources = [*(Path(main.__code__.co_filename).parents[1] / "host" / "sources").glob("*.py")]
    assert sources
    assert not [file for file in sources if "windows" in file.read_text().casefold()]


def test_every_public_source_is_of_a_spelling() -> None:
    stated = [raw for source in PUBLIC_SOURCES for raw in source.names]
    assert set(stated) <= RAW
    assert len(stated) == len(set(stated))
    assert {raw for raw in RAW if proof_of(raw) == UNPROVED} == RAW - set(stated)
    winof2 = {f"Mellanox WinOF-2 {one}" for one in ("Diagnostics", "Port QoS", "Port Traffic")}
    assert {counter_path(raw)[0] for one in PUBLIC_SOURCES if one.used for raw in one.names} == winof2 | {
        "RDMA Activity"
    }


def test_pause_durations_are_swapped_and_pause_frames_are_not() -> None:
    by_counter = {
        counter_path(raw)[1]: row.name for row, spelling, raw in SPELLINGS if spelling.dialect == WINOF2
    }
    assert {name: by_counter[name] for name in by_counter if " Pause " in name} == {
        "Sent Pause Duration": "roce_pfc_receive_pause_seconds_total",
        "Rcv Pause Duration": "roce_pfc_transmit_pause_seconds_total",
        "Rcv Pause Frames": "roce_pfc_receive_frames_total",
        "Sent Pause Frames": "roce_pfc_transmit_frames_total",
    }


def test_a_setting_names_the_row_and_the_parameter_of_linux() -> None:
    """Both lists of parameters are typed by hand, so they could differ."""
    for setting in WINDOWS_SETTINGS:
        prefixes = ("roce_config_", "roce_dcqcn_", "roce_pfc_enabled", "roce_delay_")
        assert not setting.source or row_of(setting).name.startswith(prefixes)
        assert on_linux(setting)
    of_linux = {*MLX5_DEBUGFS.values(), *(name for files in OFED.values() for name in files.values())}
    of_windows = {one.raw for one in WINDOWS_SETTINGS if one.raw.count(".") == 2}
    assert of_windows
    assert of_windows <= of_linux


@pytest.mark.parametrize(("command", "code"), [("explain", 3), ("once", 0)])
def test_a_host_without_a_device_is_no_host_where_all_is_well(command, code, tmp_path, capsys) -> None:
    (tmp_path / "class/infiniband").mkdir(parents=True)
    assert main([command, f"--path.sysfs={tmp_path}"]) == code
    printed = capsys.readouterr()
    assert (
        "no RDMA device is visible, or all are excluded; `roce-exporter check setup` says why" in printed.err
    )
    assert "every raw name" not in printed.out


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("explain", "np_cnp_sent"), "roce_cnp_sent_total"),
        (("explain", "RocePortDown"), " ## Mitigation "),
        (("capture", "--output={}/a.txt"), "a.txt: 4 devices, 1 moment (counters that rise"),
    ],
)
def test_what_is_printed_fits_the_terminal(words, shown, monkeypatch, capsys, tmp_path) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*(word.format(tmp_path) for word in words), "--host.simulate=quiet"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines()[1:])) <= 80
    assert shown in " ".join(text.split())


def test_a_reason_of_health_is_explained_with_what_would_prove_it_wrong(explained) -> None:
    lines = explained("link_down")
    assert lines[0] == "link_down (a reason for the health of a port: failed, side link, seen)"
    assert "  next: ethtool NETDEV" in lines
    assert any(line.startswith("  wrong if ") for line in lines)


QUIET = ("--host.simulate=quiet", "--host.simulate-ports=mlx5")
BROKEN = ("--host.simulate=broken",)
RECORDED = (f"--host.recording={recording('mlx5-lag')}",)


@pytest.mark.parametrize(
    ("name", "host", "reason"),
    [
        ("roce_config_rdma_mtu_bytes", QUIET, "\n  now\n    {device="),
        ("roce_cnp_sent_total", QUIET, "\n  now\n    {device="),
        ("roce_delay_drop_timeouts_total", QUIET, "it needs access to /sys/kernel/debug"),
        (
            "roce_transceiver_temperature_celsius",
            QUIET,
            "no interface for the source transceiver; it needs CAP_NET_ADMIN",
        ),
        (
            "roce_owner_queue_pairs",
            (*QUIET, "--source.disable=owners"),
            "owners is disabled (--source.disable)",
        ),
        ("roce_phy_fec_codeword_errors", BROKEN, "mlx5_1: the source fec fails: EIO"),
        ("roce_pfc_storm_hint", QUIET, "nothing yet: no storm"),
        ("roce_pfc_storms_total", RECORDED, "the fast loop is off: it needs a host that is no recording"),
        ("roce_owner_device_info", QUIET, "it needs --kubelet.pod-resources"),
        ("roce_namespace_objects", QUIET, "it needs a live host, and --rdma.namespaces"),
        ("roce_switch_info", QUIET, "not a metric of hosts: the service of switches"),
        ("roce_exporter_build_info", QUIET, "not a metric of hosts: every process that serves"),
        ("roce_wire_packets_total", QUIET, "not a metric of hosts: the capture of packets"),
    ],
)
def test_a_metric_says_why_it_has_no_series(name, host, reason, capsys) -> None:
    assert main(["explain", name, *host, "--log.level=error"]) == 0
    assert reason in capsys.readouterr().out


def test_a_series_outside_the_default_set_is_marked(capsys) -> None:
    main(["explain", "roce_port_physical_state", *QUIET])
    assert "not served in the set standard: --metrics.set=full shows it" in capsys.readouterr().out


def test_the_document_has_the_values_with_their_labels_and_what_is_no_number_has_lines(capsys) -> None:
    main(
        [
            "explain",
            "roce_phy_fec_codeword_errors",
            "--format=json",
            f"--host.recording={recording('mlx5-7.3')}",
        ]
    )
    (row,) = json.loads(capsys.readouterr().out)["explained"]
    assert row["spellings"][0]["raw"] == ["codewords_le_{le}"]
    assert row["now"][0]["series"] == "roce_phy_fec_codeword_errors_bucket"
    assert row["now"][0]["labels"]["le"] == "0"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("roce_exporter_sampler_read_duration_seconds", ["_sum{", "_count{"]),
        ("roce_pfc_enabled", ['{device="mlx5_1"', "0 of the other 28 series"]),
        ("roce_host_congestion_discards_total", ["0 of all 32 series"]),
        ("roce_port_link_downed_total", ["{"] * 4),
    ],
)
def test_zeros_of_a_long_list_are_one_line_and_buckets_none(capsys, name, shown) -> None:
    main(["explain", name, "--host.simulate=pfc-storm", "--log.level=error"])
    now = capsys.readouterr().out.partition("  now\n")[2].splitlines()
    values = [line.strip() for line in now if line.startswith("    ")]
    assert not [
        line for line in values if line.startswith("_bucket") or (line.endswith(" 0") and len(values) > 4)
    ]
    assert all(any(line.startswith(one) for line in values) for one in shown)
    assert len(values) <= 8


def test_a_metric_of_other_drivers_names_them(capsys) -> None:
    main(["explain", "roce_port_receive_data_packets_total", *QUIET])
    out = capsys.readouterr().out
    assert "the driver mlx5 (mlx5_0) does not have it; drivers that do: bnxt_re" in out


@pytest.mark.parametrize("up", [True, False, None])
def test_every_metric_without_a_raw_name_has_a_reason(up) -> None:
    names = ("owners", "health", "kernel_log", "pod_resources", "rdma_namespaces")
    states = [SourceState(name, "", "", up, 0.0, "EIO" * (up is False)) for name in names]
    for row in CATALOG:
        if not row.spellings:
            assert list(why_missing(row, HostStates((), states)))


def test_an_alert_is_its_runbook_in_whole_paragraphs_and_its_rules(explained) -> None:
    lines = explained("RocePortDown")
    assert lines[0] == "alerts/runbooks/RocePortDown.md"
    assert [line for line in lines if line.startswith("1. ") and line.endswith("10 the module.")], (
        "one line per item"
    )
    rule = lines[lines.index("## Rule") :]
    assert any("roce_port_up == 0" in line for line in rule)
    assert rule[-2:] == ["      severity: warning", "      scope: host"]


def test_an_alert_that_is_misspelled_and_a_name_of_another_exporter_lead_to_ours(explained) -> None:
    assert "similar names: RocePfcStorm, RocePfcStormEnded" in " ".join(explained("rocepfcstorm", 1))
    assert explained("node_infiniband_link_downed_total")[:2] == [
        "node_infiniband_link_downed_total is a name of node_exporter; roce_port_link_downed_total here",
        "roce_port_link_downed_total (counter, events, stable)",
    ]


def test_a_device_whose_source_fails_is_not_left_out_without_a_word(explained) -> None:
    lines = explained("roce_link_up", host="--host.simulate=broken")
    (fails,) = [line for line in lines if "mlx5_1" in line]
    assert fails == "    mlx5_1: the source link fails: EIO: [Errno 5] Input/output error: 'eth1'"
