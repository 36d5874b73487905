"""The signature of each scenario, in the counters of the NIC and in the output of the exporter."""

import logging
from itertools import pairwise

import pytest
from clock import Clock
from observed import samples
from steered import START, counters, ethtool, rdma

from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.host.simulated.conditions import RECEIVE, TRANSMIT
from roce_exporter.host.simulated.kernel import VENDORS, simulate
from roce_exporter.host.simulated.scenarios import SCENARIOS

TEN_MINUTES = START + 600


def play(scenario: str, ports: int = 4, vendor: str = "mlx5"):
    clock = Clock()
    return simulate(scenario, clock=clock, vendors=(vendor,) * ports), clock


def after(
    seconds: float, scenario: str, netdev: str = "eth0", **more
) -> tuple[dict[str, int], dict[str, int]]:
    """`ethtool -S` and the RDMA counters of one port."""
    kernel, clock = play(scenario, **more)
    clock.now = START + seconds
    return ethtool(kernel, netdev), rdma(kernel, int(netdev.removeprefix("eth")))


def paused_share(found: dict[str, int], way: str, seconds: float) -> float:
    return found[f"{way}_prio3_pause_duration"] / 1e6 / seconds


def test_quiet_has_a_little_pause_and_no_storm() -> None:
    kernel, clock = play("quiet")
    clock.now = TEN_MINUTES
    for leg in kernel.world.netdevs:
        found = ethtool(kernel, leg.netdev)
        assert 0 < paused_share(found, "rx", 600) < 0.01
        assert found["tx_prio3_pause_duration"] == found["rx_discards_phy"] == found["rx_crc_errors_phy"] == 0
    clock.now = START + 86_400
    assert kernel.world.storms == ()
    assert rdma(kernel)["local_ack_timeout_err"] == 0


def test_incast_marks_notifies_and_pauses_all_the_time_without_a_storm() -> None:
    kernel, clock = play("incast")
    clock.now = TEN_MINUTES
    hardware, found = rdma(kernel), ethtool(kernel)
    assert hardware["np_ecn_marked_roce_packets"] > hardware["np_cnp_sent"] > 1_000_000
    assert hardware["rp_cnp_handled"] > 1_000_000
    assert paused_share(found, "rx", 600) > 0.02
    assert found["rx_prio3_pause_transition"] > 10_000
    assert found["tx_prio3_packets"] < found["rx_prio3_packets"]
    assert kernel.world.storms == ()


@pytest.mark.parametrize("vendor", VENDORS)
def test_pfc_storm_is_transmitted_by_the_first_port_alone(vendor) -> None:
    kernel, clock = play("pfc-storm", vendor=vendor)
    clock.now = START + 1200
    storms = kernel.world.storms
    assert len(storms) >= 9
    assert {(storm.netdev, storm.priority, storm.direction) for storm in storms} == {("eth0", 3, TRANSMIT)}
    assert START + 20 <= storms[0].start <= START + 40
    assert all(2 <= round(storm.end - storm.start, 6) <= 6 for storm in storms)
    gaps = [later.start - earlier.start for earlier, later in pairwise(storms)]
    assert all(60 <= round(gap, 6) <= 120 for gap in gaps)


def test_pfc_storm_stops_traffic_to_the_port_and_pauses_another_port() -> None:
    kernel, clock = play("pfc-storm")
    clock.now = START + 300
    storm = kernel.world.storms[0]
    kernel, clock = play("pfc-storm")
    clock.now = storm.start + 0.1
    before, felt_before = ethtool(kernel), ethtool(kernel, "eth1")
    clock.now = storm.end - 0.1
    found, felt = ethtool(kernel), ethtool(kernel, "eth1")
    seconds = storm.end - storm.start - 0.2
    rise = found["tx_prio3_pause_duration"] - before["tx_prio3_pause_duration"]
    assert rise == pytest.approx(seconds * 1e6, abs=1)
    assert found["rx_prio3_packets"] == before["rx_prio3_packets"]
    assert found["rx_prio3_discards"] > before["rx_prio3_discards"]
    risen = felt["rx_prio3_pause_duration"] - felt_before["rx_prio3_pause_duration"]
    assert 0.5 < risen / 1e6 / seconds < 0.7
    assert felt["rx_prio3_packets"] > felt_before["rx_prio3_packets"]
    assert rdma(kernel)["local_ack_timeout_err"] > 0


def test_victim_is_paused_permanently_by_others() -> None:
    kernel, clock = play("victim")
    clock.now = TEN_MINUTES
    assert {(storm.netdev, storm.direction) for storm in kernel.world.storms} == {
        ("eth0", RECEIVE),
        ("eth2", RECEIVE),
    }
    storm = kernel.world.storms[0]
    kernel, clock = play("victim")
    clock.now = storm.start + 0.1
    before = ethtool(kernel)
    clock.now = storm.end - 0.1
    found = ethtool(kernel)
    assert found["tx_prio3_packets"] == before["tx_prio3_packets"]
    assert found["rx_prio3_packets"] > before["rx_prio3_packets"]
    assert found["tx_prio3_pause_duration"] == 0


def test_slow_receiver_pauses_its_switch_with_pcie_stall_and_without_a_storm() -> None:
    kernel, clock = play("slow-receiver")
    clock.now = TEN_MINUTES
    found = ethtool(kernel)
    assert paused_share(found, "tx", 600) > 0.05
    assert found["outbound_pci_stalled_wr_events"] > 100
    assert found["rx_prio3_discards"] > 100
    assert rdma(kernel)["out_of_buffer"] > 1000
    assert kernel.world.storms == ()
    assert ethtool(kernel, "eth1")["outbound_pci_stalled_wr_events"] == 0


def test_misconfigured_has_pfc_on_another_priority_than_the_traffic() -> None:
    found, hardware = after(600, "misconfigured")
    assert "rx_prio4_pause" in found
    assert "rx_prio3_pause" not in found
    assert found["rx_prio3_packets"] > 0
    assert found["rx_prio3_discards"] > 10_000
    assert hardware["out_of_sequence"] > 10_000


def test_misconfigured_maps_dscp_differently_and_loses_pfc_now_and_then() -> None:
    kernel, clock = play("misconfigured")
    maps = [{app.protocol: app.priority for app in kernel.dcb(f"eth{n}").app} for n in range(4)]
    assert maps == [{26: 3, 48: 6}, {26: 2, 48: 6}, {}, {26: 3, 48: 6}]
    masks = set()
    for clock.now in range(int(START), int(START) + 300):
        masks.add(kernel.dcb("eth1").pfc.enabled[3])
    assert masks == {True, False}


def test_misconfigured_trusts_the_vlan_tag_and_marks_without_cnps() -> None:
    by_tag, _ = after(600, "misconfigured", "eth2")
    assert by_tag["rx_prio0_packets"] > 100 * by_tag["rx_prio6_packets"]
    assert by_tag["rx_prio3_packets"] == 0
    assert by_tag["rx_prio0_discards"] > 10_000
    _, hardware = after(600, "misconfigured", "eth3")
    assert hardware["np_ecn_marked_roce_packets"] > 1_000_000
    assert hardware["np_cnp_sent"] == 0


def test_misconfigured_trust_is_exported_where_the_driver_exposes_it() -> None:
    kernel, _ = play("misconfigured", vendor="bnxt")
    assert [kernel.dcb(f"eth{n}").trust for n in range(4)] == [(5,), (5,), (255,), (5,)]
    kernel, _ = play("misconfigured")
    assert kernel.dcb("eth2").trust is None


def test_flapping_goes_down_again_and_again_and_is_reset_sometimes() -> None:
    kernel, clock = play("flapping")
    downs, last = 0, 1
    for tenth in range(6000):
        clock.now = START + tenth / 10
        up = kernel.ethtool_link("eth0")["up"]
        downs, last = downs + (last - up == 1), up
    assert downs >= 10
    assert {reset.netdev for reset in kernel.world.resets} == {"eth0"}
    assert len(kernel.world.resets) in (downs // 3, downs // 3 + 1)
    assert kernel.ethtool_link("eth1") == {
        "up": 1,
        "down_events": 0,
        "speed": 50_000_000_000,
        "lanes": 4,
        "full_duplex": 1,
    }


def test_lossy_damages_packets_on_the_wire() -> None:
    kernel, clock = play("lossy")
    clock.now = TEN_MINUTES
    found, hardware, fec = ethtool(kernel), rdma(kernel), kernel.ethtool_fec("eth0")
    assert found["rx_crc_errors_phy"] > 5000
    assert hardware["out_of_sequence"] > 5000
    assert hardware["rx_icrc_encapsulated"] > 50
    assert fec["uncorrectable_blocks"] > 5000
    assert fec["corrected_blocks"] > 1000 * kernel.ethtool_fec("eth1")["corrected_blocks"] / 2
    assert rdma(kernel, 1)["out_of_sequence"] == ethtool(kernel, "eth1")["rx_crc_errors_phy"] == 0


def test_broken_fails_in_another_way_on_every_port() -> None:
    kernel, clock = play("broken")
    clock.now = START + 60
    with pytest.raises(OSError, match="port_rcv_errors"):
        kernel.text("class/infiniband/mlx5_0/ports/1/counters/port_rcv_errors")
    with pytest.raises(OSError, match="eth1"):
        kernel.ethtool_statistics("eth1")
    with pytest.raises(OSError, match="mlx5_2"):
        rdma(kernel, 2)
    stood_still, last = 0, None
    for second in range(120):
        clock.now = START + 60 + second
        found = kernel.ethtool_statistics("eth3")[1]
        stood_still, last = stood_still + (found == last), found
    assert stood_still >= 10


FAMILIES = {
    "mlx5": (
        "roce_pfc_receive_pause_seconds_total",
        "roce_pcie_write_stalled_seconds_total",
        "roce_pfc_enabled",
    ),
    "mlx5-lag": ("roce_pfc_receive_transitions_total", "roce_port_transmit_bytes_total"),
    "bnxt": (
        "roce_pfc_transmit_transitions_total",
        "roce_priority_receive_bytes_total",
        "roce_config_trust_dscp",
    ),
    "ionic": ("roce_pfc_transmit_pause_seconds_total", "roce_pfc_receive_all_frames_total"),
    "ice": ("roce_pfc_receive_xoff_frames_total", "roce_pfc_transmit_xon_frames_total", "roce_pfc_enabled"),
}

COMMON = (
    "roce_device_info",
    "roce_port_up",
    "roce_port_speed_bytes_per_second",
    "roce_ecn_marked_packets_total",
    "roce_cnp_sent_total",
    "roce_cnp_handled_total",
    "roce_phy_receive_bytes_total",
    "roce_link_up",
    "roce_netdev_carrier_changes_total",
)


async def collect(scenario: str, vendor: str, seconds: float = 100.0):
    """The exporter and its last observation, after two collections."""
    kernel, clock = play(scenario, vendor=vendor)
    collector = Collector(kernel, Settings(), clock=lambda: 0.0)
    exporter = Exporter(collector)
    try:
        await exporter.observe(5.0)
        clock.now = START + seconds
        return exporter, await exporter.observe(5.0)
    finally:
        collector.close()


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("vendor", VENDORS)
async def test_every_name_is_mapped(scenario, vendor) -> None:
    exporter, observation = await collect(scenario, vendor)
    plans = exporter.normaliser.plans
    assert len(plans) == 4
    assert {name: plan.unmapped for name, plan in plans.items() if plan.unmapped} == {}
    if scenario != "broken":
        assert [state for state in observation.snapshot.states if state.up is False or state.unreadable] == []


@pytest.mark.parametrize("vendor", VENDORS)
async def test_the_exporter_exports_what_the_vendor_counts(vendor) -> None:
    exporter, observation = await collect("pfc-storm", vendor)
    shown = {series.partition("{")[0] for series in samples(exporter.render(observation, Format.TEXT))}
    assert {*COMMON, *FAMILIES[vendor]} - shown == set()
    told = {
        "roce_pfc_receive_pause_seconds_total": vendor != "ice",
        "roce_pfc_receive_xon_frames_total": vendor == "ice",
        "roce_config_trust_dscp": vendor in ("bnxt", "ice"),
    }
    assert {name: name in shown for name in told} == told


async def test_the_exporter_stays_up_on_a_broken_host(caplog) -> None:
    with caplog.at_level(logging.ERROR):
        exporter, observation = await collect("broken", "mlx5")
    down = {(state.source, state.device) for state in observation.snapshot.states if state.up is False}
    assert {("ethtool", "mlx5_1"), ("rdma_netlink", "mlx5_2")} <= down
    assert not any(device in ("mlx5_0", "mlx5_3") for _, device in down)
    shown = samples(exporter.render(observation, Format.TEXT))
    for device in range(4):
        assert f'roce_ecn_marked_packets_total{{device="mlx5_{device}",port="1"}}' in shown
    assert "fault in the exporter" not in caplog.text


@pytest.mark.parametrize("vendor", VENDORS)
def test_sixteen_ports_are_sixteen_devices(vendor) -> None:
    kernel, clock = play("pfc-storm", ports=16, vendor=vendor)
    clock.now = START + 60
    assert len(kernel.rdma_devices()) == len(kernel.entries("class/infiniband")) == 16
    netdevs = {netdev for netdev, _ in counters(kernel) if netdev.startswith("eth")}
    assert len(netdevs) == (32 if vendor == "mlx5-lag" else 16)
