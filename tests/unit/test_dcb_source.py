"""DCB values become names and numbers; missing values have no name."""

from __future__ import annotations

from dataclasses import replace

from roce_exporter.catalog import INDEX
from roce_exporter.kernel.dcb_netlink import App, Buffer, Dcb, Ets, Pfc
from roce_exporter.recording.dcb_printed import print_dcb
from roce_exporter.recording.dcb_recorded import read_dcb
from roce_exporter.sources.dcb import flatten

PFC = Pfc(8, tuple(priority == 3 for priority in range(8)), False, 7, tuple(range(8)), tuple(range(10, 18)))
ETS = Ets(
    False, 8, False, (0, 0, 0, 60, 0, 0, 40, 0), (0,) * 8, (0, 0, 0, 2, 0, 0, 2, 0), (0, 1, 2, 3, 4, 5, 6, 7)
)
WHOLE = Dcb(
    PFC,
    ETS,
    (0,) * 8,
    (App(5, 26, 3), App(5, 48, 6), App(1, 0x8906, 3)),
    (5, 255),
    None,
    Buffer((0, 0, 0, 1, 0, 0, 0, 0), (262144, 131072, 0, 0, 0, 0, 0, 0), 524160),
    None,
    PFC,
    None,
    9,
)


def test_an_empty_reply_has_no_names() -> None:
    assert flatten(Dcb()) == {}
    assert flatten(Dcb(app=())) == {"dscp_mappings": 0}, (
        "an empty table is a value, and means that mlx5 trusts PCP"
    )


def test_every_value_is_named_by_its_priority_class_buffer_or_dscp() -> None:
    found = flatten(WHOLE)
    assert found["pfc_enabled_3"] == 1
    assert found["pfc_enabled_4"] == 0
    assert (found["pfc_requests_7"], found["pfc_indications_7"]) == (7, 17)
    assert found["ets_transmit_bandwidth_3"] == 60
    assert found["priority_traffic_class_6"] == 6
    assert {name: value for name, value in found.items() if name.startswith("dscp")} == {
        "dscp_mappings": 2,
        "dscp_priority_26": 3,
        "dscp_priority_48": 6,
    }
    assert (found["trust_dscp"], found["dcbx_mode"], found["pfc_delay"]) == (1, 9, 7)
    assert (found["priority_buffer_3"], found["buffer_bytes_1"], found["buffer_total"]) == (1, 131072, 524160)
    assert found["peer_pfc_enabled_3"] == 1


def test_settings_of_the_switch_differ_from_local_ones() -> None:
    found = flatten(Dcb(peer_ets=replace(ETS, willing=True), peer_app=(App(5, 26, 4), App(1, 0x8906, 3))))
    assert (found["peer_ets_willing"], found["peer_ets_transmit_bandwidth_3"]) == (1, 60)
    assert (found["peer_ets_algorithm_6"], found["peer_priority_traffic_class_5"]) == (2, 5)
    assert found["peer_dscp_priority_26"] == 4
    assert all(name.startswith("peer_") for name in found)
    for name in found:
        assert INDEX.claimed("mlx5", "dcb", name), name


def test_a_delay_of_zero_is_not_exported() -> None:
    assert "pfc_delay" not in flatten(Dcb(pfc=replace(PFC, delay=0)))


def test_trust_is_that_of_the_strongest_selector() -> None:
    assert flatten(Dcb(trust=(255, 5)))["trust_dscp"] == 0
    assert flatten(Dcb(trust=()))["trust_dscp"] == 0
    assert "trust_dscp" not in flatten(Dcb())


def test_every_name_has_a_row_or_a_reason() -> None:
    for dialect in ("mlx5", "mlx4", "bnxt_re", "irdma", "hns", "qedr"):
        for name in flatten(WHOLE):
            assert INDEX.claimed(dialect, "dcb", name) or INDEX.left_out(dialect, "dcb", name), (
                dialect,
                name,
            )


def test_pause_frames_of_dcb_serve_only_where_they_count_enabled_priorities() -> None:
    """mlx5 counts them for priorities without PFC, too, which must not be shown."""
    assert INDEX.claimed("irdma", "dcb", "pfc_indications_3").name == "roce_pfc_receive_frames_total"
    assert INDEX.claimed("hns", "dcb", "pfc_requests_3").name == "roce_pfc_transmit_frames_total"
    assert INDEX.claimed("mlx5", "dcb", "pfc_indications_3") is None
    assert INDEX.claimed("mlx4", "dcb", "pfc_requests_3") is None


def test_the_output_of_a_capture_is_read_back() -> None:
    read = flatten(read_dcb(print_dcb(WHOLE), "eth0", "test"))
    left = {name: value for name, value in flatten(WHOLE).items() if name not in read}
    assert left.keys() == {"trust_dscp"} | {f"max_rate_{n}" for n in range(8)}
    assert read.items() <= flatten(WHOLE).items()
