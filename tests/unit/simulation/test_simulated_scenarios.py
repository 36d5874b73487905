"""Scenarios in the output of the exporter, and when storms are. What the checks find in each is in tests/golden/findings.tsv."""

import logging
from itertools import product

import pytest
from clock import Clock
from observed import samples
from steered import START, counters, ethtool, rdma

from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.host.simulated.conditions import RECEIVE
from roce_exporter.host.simulated.kernel import VENDORS, simulate
from roce_exporter.host.simulated.scenarios import SCENARIOS
from roce_exporter.model import decode_record
from roce_exporter.normalise.log_lines import event_of, read_line


def play(scenario: str, ports: int = 4, vendor: str = "mlx5"):
    clock = Clock()
    return simulate(scenario, clock=clock, vendors=(vendor,) * ports), clock


SOME, MANY, MOST = (1, 1e6), (10_000, 1e15), (1e6, 1e15)
NONE = (0, 0)
SIGNATURES = {
    "quiet": {
        "eth0 rx_prio3_pause_duration": (1, 6e6),
        **dict.fromkeys(
            ("eth0 tx_prio3_pause_duration", "eth3 rx_discards_phy", "eth2 rx_crc_errors_phy"), NONE
        ),
    },
    "incast": {
        **dict.fromkeys((f"mlx5_0 {one}" for one in ("np_ecn_marked_roce_packets", "np_cnp_sent")), MOST),
        **dict.fromkeys(("mlx5_0 rp_cnp_handled", "eth0 rx_prio3_pause_duration"), MOST),
        "eth0 rx_prio3_pause_transition": MANY,
    },
    "victim": {"eth0 rx_prio3_pause_duration": MOST, "eth0 tx_prio3_pause_duration": NONE},
    "slow-receiver": {
        "eth0 tx_prio3_pause_duration": MOST,
        "eth0 outbound_pci_stalled_wr_events": SOME,
        "eth1 outbound_pci_stalled_wr_events": NONE,
        "eth0 rx_prio3_discards": (100, 1e6),
        "mlx5_0 out_of_buffer": (1000, 1e9),
    },
    "misconfigured": {
        **dict.fromkeys(("eth0 rx_prio3_discards", "mlx5_0 out_of_sequence", "eth2 rx_prio0_discards"), MANY),
        "eth2 rx_prio3_packets": NONE,
        "mlx5_3 np_ecn_marked_roce_packets": MOST,
        "mlx5_3 np_cnp_sent": NONE,
    },
    "lossy": {
        **dict.fromkeys(("eth0 rx_crc_errors_phy", "mlx5_0 out_of_sequence"), (5000, 1e9)),
        "mlx5_0 rx_icrc_encapsulated": (50, 1e6),
        **dict.fromkeys(("mlx5_1 out_of_sequence", "eth1 rx_crc_errors_phy"), NONE),
    },
}
"""The least and the most of counters after ten minutes, by device and name."""


@pytest.mark.parametrize("scenario", SIGNATURES)
def test_the_signature_of_a_scenario(scenario) -> None:
    kernel, clock = play(scenario)
    clock.now = START + 600
    found = {" ".join(place): value for place, value in counters(kernel).items()}
    bounds = SIGNATURES[scenario]
    assert {name: found[name] for name, (low, high) in bounds.items() if not low <= found[name] <= high} == {}
    paused = {("eth0", RECEIVE), ("eth2", RECEIVE)} if scenario == "victim" else set()
    assert {(storm.netdev, storm.direction) for storm in kernel.world.storms} == paused


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


EACH_ONCE = {*((name, VENDORS[0]) for name in SCENARIOS), *(("broken", vendor) for vendor in VENDORS)}


@pytest.mark.parametrize(
    ("scenario", "vendor"),
    [
        pytest.param(*one, marks=() if one in EACH_ONCE else pytest.mark.ci)
        for one in product(SCENARIOS, VENDORS)
    ],
)
async def test_every_name_is_mapped(scenario, vendor) -> None:
    exporter, observation = await collect(scenario, vendor)
    plans = exporter.normaliser.plans
    assert len(plans) == 4
    assert {name: plan.unmapped for name, plan in plans.items() if plan.unmapped} == {}
    if scenario != "broken":
        assert [state for state in observation.snapshot.states if state.up is False or state.unreadable] == []


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


# The kernel log: drivers write about their links and transceivers


def events(vendor: str, scenario: str, seconds: float = 150.0) -> list[tuple[tuple[str, ...], str]]:
    """Names and events of the messages, in order."""
    time = [0.0]
    kernel = simulate(scenario, clock=lambda: time[0], vendors=(vendor,) * 2)
    log = kernel.open_kernel_log(oldest=False)
    found = []
    while time[0] < seconds:
        time[0] += 1.0
        for raw in log.read(1000).records:
            record = decode_record(raw)
            assert record is not None
            line = read_line(record)
            assert line is not None
            found.append((line.names, event_of(line)))
    return found


def test_an_overheating_transceiver_is_reported_before_the_link_goes_down() -> None:
    found = events("mlx5", "overheating", 80)
    assert [event for _, event in found] == [
        "module_high_temperature",
        "link_down",
        "module_unplugged",
        "module_plugged",
        "link_up",
    ]
    assert {names[-1] for names, _ in found} == {"0000:11:00.0"}


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_driver_reports_its_link_as_often_as_it_changes(vendor) -> None:
    found = [event for _, event in events(vendor, "flapping")]
    assert found.count("link_down") > 1
    assert abs(found.count("link_down") - found.count("link_up")) <= 1
    assert set(found) == {"link_down", "link_up"}


def test_a_quiet_host_writes_nothing() -> None:
    assert events("mlx5", "quiet") == []


def test_each_reader_has_its_own_position() -> None:
    time = [0.0]
    kernel = simulate("flapping", clock=lambda: time[0])
    time[0] = 100.0
    newest, oldest = kernel.open_kernel_log(oldest=False), kernel.open_kernel_log(oldest=True)
    assert newest.read(10).records == ()
    first = oldest.read(1).records + oldest.read(1).records
    assert first == kernel.open_kernel_log(oldest=True).read(2).records
    assert len(first) == 2
