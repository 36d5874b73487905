"""Essential facts: a value that a known driver must report is listed when it is missing, and no other value is."""

from dataclasses import replace

import pytest

from roce_exporter.catalog import DIALECTS, INDEX
from roce_exporter.catalog.drivers import ESSENTIALS, RENAMED
from roce_exporter.catalog.row import ETHTOOL, HW_COUNTERS
from roce_exporter.model import WHOLE_DEVICE, Device, DeviceReadings, Netdev, Port, Reading
from roce_exporter.normalise.normaliser import Normaliser, missing_now
from roce_exporter.self_metrics.collection import NAMES_SHOWN, gaps_of

OLD_BNXT = {
    "rx_bytes": 1,
    "rx_pkts": 2,
    "tx_cnp_pkts": 3,
    "rx_cnp_pkts": 4,
    "rx_ecn_marked_pkts": 5,
    "to_retransmits": 6,
    "seq_err_naks_rcvd": 7,
    "oos_drop_count": 8,
    "max_retry_exceeded": 9,
    "rx_read_req": 10,
}
FUTURE = {"tx_cnp_pkts": "cnp_out_v2", "to_retransmits": "ack_timer_expired", "oos_drop_count": "ooo_packets"}
"""Possible names in a future kernel."""

BNXT = Device("bnxt_re0", "bnxt_en", "bnxt_re", protocol="roce", ports=(Port(1, "Ethernet"),))
MLX5 = Device(
    "mlx5_0", "mlx5_core", "mlx5", function="pf", ports=(Port(1, "Ethernet", (Netdev("eth0", "port"),)),)
)
MLX5_RDMA = {
    "local_ack_timeout_err": 1,
    "out_of_sequence": 2,
    "packet_seq_err": 3,
    "out_of_buffer": 4,
    "rx_read_requests": 5,
}


def reading(source: str, values: dict[str, int], port: int = 1, netdev: str = "") -> Reading:
    return Reading(source, "d", port, tuple(values), tuple(values.values()), (), netdev)


def missing(device: Device, *readings: Reading) -> set[str]:
    normaliser = Normaliser()
    found = normaliser.normalise(DeviceReadings(device, readings))
    return {fact for _, fact in missing_now(normaliser.plans[device.name].missing, found.values)}


def test_a_driver_that_renames_its_counters_is_detected() -> None:
    renamed = {FUTURE.get(name, name): value for name, value in OLD_BNXT.items()}
    assert missing(BNXT, reading(HW_COUNTERS, renamed)) == {"cnp_sent", "ack_timeouts", "out_of_sequence"}


def test_counters_that_old_firmware_lacks_are_missed_only_with_unknown_names() -> None:
    older = {name: value for name, value in OLD_BNXT.items() if "cnp" not in name and "ecn" not in name}
    assert missing(BNXT, reading(HW_COUNTERS, older)) == set()
    assert missing(BNXT, reading(HW_COUNTERS, older | {"cnp_out_v2": 3})) == {
        "cnp_sent",
        "cnp_handled",
        "ecn_marked",
    }


def test_a_virtual_function_need_not_count_congestion() -> None:
    assert missing(MLX5, reading(HW_COUNTERS, MLX5_RDMA)) == {"cnp_sent", "cnp_handled", "ecn_marked"}
    for function in ("vf", ""):
        assert missing(replace(MLX5, function=function), reading(HW_COUNTERS, MLX5_RDMA)) == set()
    renamed = reading(HW_COUNTERS, MLX5_RDMA | {"cnp_out_v2": 1})
    assert missing(replace(MLX5, function="vf"), renamed) == set()
    # for a function of unknown kind the names decide
    assert missing(replace(MLX5, function=""), renamed) == {"cnp_sent", "cnp_handled", "ecn_marked"}


@pytest.mark.parametrize(("on", "facts"), [(1, {"pfc_frames", "pfc_pause_time"}), (0, set())])
def test_pfc_frames_of_mlx5_are_missed_only_while_pfc_is_on(on, facts) -> None:
    link = {"rx_bytes_phy": 1, "rx_crc_errors_phy": 0}
    dcb = reading("dcb", {"pfc_enabled_3": on, "pfc_enabled_4": 0}, netdev="eth0")
    assert missing(MLX5, reading(ETHTOOL, link, netdev="eth0"), dcb) == facts
    listed = link | {"rx_prio3_pause": 1, "rx_prio3_pause_duration": 2}
    assert missing(MLX5, reading(ETHTOOL, listed, netdev="eth0"), dcb) == set()


def test_each_port_is_checked_alone() -> None:
    device = replace(BNXT, ports=(Port(1, "Ethernet"), Port(2, "Ethernet")))
    renamed = {name: value for name, value in OLD_BNXT.items() if name != "to_retransmits"}
    normaliser = Normaliser()
    found = normaliser.normalise(
        DeviceReadings(device, (reading(HW_COUNTERS, OLD_BNXT, 1), reading(HW_COUNTERS, renamed, 2)))
    )
    assert list(missing_now(normaliser.plans["bnxt_re0"].missing, found.values)) == [("2", "ack_timeouts")]


def test_facts_of_the_whole_device_count_for_its_port() -> None:
    """A mana has its CNP counters in the device's own directory."""
    device = Device("mana_0", "mana", "mana", ports=(Port(1, "Ethernet"),))
    of_port = {"requester_timeout": 1, "responder_oos": 2, "requester_oos_nak": 3, "rx_bytes": 4, "fresh": 5}
    of_device = {"sent_cnps": 1, "received_cnps": 2, "received_ecns": 3}
    whole = reading(HW_COUNTERS, of_device, WHOLE_DEVICE)
    assert missing(device, reading(HW_COUNTERS, of_port), whole) == set()
    assert missing(device, reading(HW_COUNTERS, of_port)) == {"cnp_sent", "cnp_handled", "ecn_marked"}


def test_devices_without_roce_have_no_essential_facts() -> None:
    """A driver that is unknown has none either."""
    fresh = reading(HW_COUNTERS, {"fresh": 1})
    assert missing(BNXT, fresh)
    assert missing(replace(BNXT, ports=(Port(1, "InfiniBand"),)), fresh) == set()
    assert missing(replace(BNXT, protocol="iw"), fresh) == set()
    assert missing(replace(BNXT, dialect=""), fresh) == set()


def test_unknown_names_have_a_bounded_number_of_series() -> None:
    many = {f"fresh_{number:03}": number for number in range(NAMES_SHOWN + 7)}
    normaliser = Normaliser()
    found = normaliser.normalise(
        DeviceReadings(BNXT, (reading(HW_COUNTERS, many), reading(HW_COUNTERS, many, 2)))
    )
    gaps = gaps_of(normaliser.plans["bnxt_re0"], found.values)
    assert gaps.unmapped == 2 * len(many)
    assert gaps.names == tuple((HW_COUNTERS, f"fresh_{number:03}") for number in range(NAMES_SHOWN))


def test_the_table_names_metrics_that_the_driver_can_have() -> None:
    rows = INDEX.named
    for essential in ESSENTIALS:
        assert essential.dialect in DIALECTS
        spellings = [
            spelling
            for metric in essential.metrics
            for spelling in rows[metric].spellings
            if INDEX.speaks(essential.dialect, spelling)
        ]
        assert any(spelling.source == essential.source for spelling in spellings), essential


def test_every_driver_with_counters_has_essential_facts() -> None:
    """Siw has no counters, and bng_re no RDMA device yet."""
    assert set(DIALECTS) - {essential.dialect for essential in ESSENTIALS} == {"siw", "bng_re"}
    assert any(essential.required == RENAMED for essential in ESSENTIALS)
    keys = [(essential.dialect, essential.fact) for essential in ESSENTIALS]
    assert len(keys) == len(set(keys)), "no fact is required twice"
