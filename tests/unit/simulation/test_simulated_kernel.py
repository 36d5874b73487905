"""The simulated host as a kernel: every scenario on every vendor's NIC, with each driver's own names."""

import errno
import json
import random
import re

import pytest
from clock import Clock
from kernel import ScriptedPort, simulate_script
from steered import START, counters, ethtool, rdma

from roce_exporter.cli import main
from roce_exporter.host.kernel import Absent
from roce_exporter.host.simulated.conditions import FILES, RECEIVE, TRANSMIT, Conditions, Pause, Span, Storm
from roce_exporter.host.simulated.kernel import VENDORS, ScenarioError, SimulatedKernel, simulate
from roce_exporter.host.simulated.scenarios import SCENARIOS

ORDER = list(VENDORS)
CASES = [
    pytest.param(scenario, vendor, marks=() if place % len(ORDER) == ORDER.index(vendor) else pytest.mark.ci)
    for place, scenario in enumerate(SCENARIOS)
    for vendor in ORDER
]
"""Each scenario on one vendor's NIC, and on all of them in CI."""

REFRESH = 1.0


def at_times(scenario: str, vendor: str, times: list[float], seed: int = 1):
    """The counters at each time, and the host."""
    clock = Clock()
    kernel = simulate(scenario, clock=clock, vendors=(vendor,) * 2, seed=seed)
    found = []
    for clock.now in times:
        found.append(counters(kernel))
    return found, kernel


DURATIONS = {
    "mlx5": ("rx_prio3_pause_duration", "tx_prio3_pause_duration"),
    "mlx5-lag": ("rx_prio3_pause_duration", "tx_prio3_pause_duration"),
    "bnxt": ("pfc_pri3_rx_duration_us", "pfc_pri3_tx_duration_us"),
    "ionic": ("rx_pripause_3_1us_count", "tx_pripause_3_1us_count"),
}


@pytest.mark.parametrize(("scenario", "vendor"), CASES)
def test_counters_rise_between_resets_and_do_not_depend_on_earlier_readings(scenario, vendor) -> None:
    chance = random.Random(f"{scenario} {vendor}")  # noqa: S311 - other moments in each case
    times = [START + time for time in sorted(chance.uniform(0, 400) for _ in range(12))]
    found, kernel = at_times(scenario, vendor, times)
    late = REFRESH if vendor == "bnxt" else 0.0
    for before, after, since, now in zip(found, found[1:], times, times[1:], strict=False):
        # If counters are refreshed once a second, a reset shows up to a second later.
        reset = any(since - REFRESH < one.time <= now for one in kernel.world.resets)
        assert reset or not [key for key in before.keys() & after.keys() if after[key] < before[key]]
        for key in before.keys() & after.keys():
            if key[1] in DURATIONS.get(vendor, ()):
                # The values are whole microseconds, each rounded down.
                assert after[key] - before[key] <= (now - since + late) * 1e6 + 1
    assert at_times(scenario, vendor, times[-1:])[0] == found[-1:]
    assert at_times(scenario, vendor, times[::4] + times[-1:])[0][-1] == found[-1]


def one_port(vendor: str, *spans: Span, **more: object) -> tuple[SimulatedKernel, Clock]:
    clock = Clock()
    return simulate_script([ScriptedPort(vendor, spans, **more)], clock=clock), clock


STORM = Span(2.0, Conditions(load=0.5, pauses=(Pause(3, TRANSMIT, 1.0),)))
CALM = Span(10.0, Conditions(load=0.5))


def test_every_storm_is_in_the_list_of_true_storms() -> None:
    kernel, clock = one_port("mlx5", STORM, CALM, STORM, CALM, STORM, STORM, CALM, STORM)
    clock.now = START + 2 + 12 + 10 + 4 + 10 + 0.5
    at = START + 2
    assert kernel.world.storms == (
        Storm("eth0", 3, TRANSMIT, START, START + 2),
        Storm("eth0", 3, TRANSMIT, at + 10, at + 12),
        Storm("eth0", 3, TRANSMIT, at + 22, at + 26),
        Storm("eth0", 3, TRANSMIT, at + 36, at + 36.5),
    )


MOVES = "moves"


@pytest.mark.parametrize(
    ("vendor", "name", "before", "rise", "ended"),
    [
        ("mlx5", "tx_prio3_pause_duration", 500_000, 1_000_000, 2_000_000),
        ("mlx5", "tx_prio3_pause", 11_921, 23_842, 47_684),
        ("mlx5", "rx_prio3_packets", MOVES, 0, MOVES),
        ("mlx5", "tx_prio3_packets", MOVES, MOVES, MOVES),
        ("mlx5", "rx_prio3_pause_duration", 0, 0, 0),
        ("mlx5", "rx_prio3_pause_transition", 0, 0, 0),
        ("bnxt", "pfc_pri3_tx_transitions", 1, 0, 2),
        ("bnxt", "pfc_pri3_tx_duration_us", 0, 1_000_000, 2_000_000),
        ("bnxt", "continuous_roce_pause_events", 1, 0, 1),
        ("bnxt", "resume_roce_pause_events", 0, 0, 1),
        ("ice", "tx_priority_3_xoff.nic", 2980, 5960, 11_921),
        ("ice", "tx_priority_3_xon.nic", 0, 0, 1),
        ("ionic", "tx_pripause_3_1us_count", 500_000, 1_000_000, 2_000_000),
        ("ionic", "frames_rx_pri_3", MOVES, 0, MOVES),
        ("ionic", "rx_pripause_3_1us_count", 0, 0, 0),
    ],
)
def test_what_each_driver_counts_while_a_storm_is_transmitted(vendor, name, before, rise, ended) -> None:
    """Half a second after its beginning, a second later, and after its end."""
    kernel, clock = one_port(vendor, CALM, STORM, CALM)
    seen = []
    for clock.now in (START + 10.5, START + 11.5, START + 15):
        found = ethtool(kernel)
        assert vendor != "ice" or not [one for one in found if "duration" in one or "us_count" in one]
        seen.append(found[name])
    first, second, last = seen
    for value, expected in ((first, before), (second - first, rise), (last, ended)):
        assert value > 0 if expected == MOVES else value in (expected, expected + bool(expected))


def test_mlx5_names_only_priorities_with_pfc() -> None:
    mask_off = Span(5.0, Conditions(lossless=()))
    moved = Span(5.0, Conditions(lossless=(5,)))
    kernel, clock = one_port("mlx5", Span(5.0), mask_off, moved, Span(5.0))

    def with_pfc() -> set[str]:
        return {name for name in ethtool(kernel) if name.endswith("_pause")}

    seen = []
    for clock.now in (START, START + 5, START + 10, START + 15):
        seen.append(with_pfc())
    assert seen == [
        {"rx_prio3_pause", "tx_prio3_pause"},
        set(),
        {"rx_prio5_pause", "tx_prio5_pause"},
        seen[0],
    ]


def test_bnxt_changes_once_a_second_at_its_own_phase() -> None:
    kernel, clock = one_port("bnxt", phase=0.25, afterwards=Conditions(load=0.5))
    changes, last = [], None
    for tenth in range(1, 50):
        clock.now = START + tenth / 10
        now = kernel.ethtool_statistics("eth0")[1]
        if last is not None and now != last:
            changes.append(tenth)
        last = now
    assert changes == [3, 13, 23, 33, 43]


def test_data_of_infiniband_is_counted_in_words() -> None:
    kernel, clock = one_port("mlx5", Span(10.0, Conditions(load=1.0)))
    clock.now = START + 8
    words = int(kernel.text("class/infiniband/mlx5_0/ports/1/counters/port_xmit_data"))
    assert words == pytest.approx(50e9 * 8 / 4, rel=1e-9)


def test_a_lag_is_one_device_whose_counters_are_the_sum_of_two_member_ports() -> None:
    first, second = Span(10.0, Conditions(load=1.0)), Span(10.0, Conditions(load=0.5, lost=5.0))
    kernel, clock = one_port("mlx5-lag", first, second=[second])
    clock.now = START + 10
    assert [device.name for device in kernel.rdma_devices()] == ["mlx5_bond_0"]
    assert kernel.rdma_ports(kernel.rdma_devices()[0])[0].netdev == "bond0"
    assert kernel.text("class/net/bond0/bonding/slaves") == "eth0 eth1"
    packets = [ethtool(kernel, netdev)["rx_prio3_packets"] for netdev in ("eth0", "eth1")]
    total = int(kernel.text("class/infiniband/mlx5_bond_0/ports/1/counters/port_rcv_packets"))
    assert total - sum(packets) in (0, 1)
    assert rdma(kernel)["out_of_sequence"] == 50
    with pytest.raises(Absent):
        kernel.ethtool_statistics("bond0")


def test_a_link_that_goes_down_is_down_everywhere_and_keeps_its_counters() -> None:
    kernel, clock = one_port("mlx5", CALM, Span(3.0, Conditions(up=False)), CALM)
    clock.now = START + 9
    busy = ethtool(kernel)
    clock.now = START + 11
    assert kernel.text("class/infiniband/mlx5_0/ports/1/state") == "1: DOWN"
    assert kernel.text("class/infiniband/mlx5_0/ports/1/phys_state") == "2: Polling"
    assert kernel.text("class/infiniband/mlx5_0/ports/1/rate") == "40 Gb/sec (4X QDR)"
    assert kernel.text("class/net/eth0/carrier") == "0"
    assert kernel.text("class/net/eth0/speed") == "-1"
    assert kernel.ethtool_link("eth0") == {"up": 0, "down_events": 1}
    down = ethtool(kernel)
    assert down["rx_packets_phy"] > busy["rx_packets_phy"]
    clock.now = START + 12.9
    assert ethtool(kernel) == down
    clock.now = START + 14
    assert kernel.ethtool_link("eth0")["speed"] == 50_000_000_000
    assert [
        kernel.text(f"class/net/eth0/carrier_{what}") for what in ("changes", "up_count", "down_count")
    ] == ["2", "1", "1"]


def test_a_reset_starts_from_zero_as_another_device() -> None:
    kernel, clock = one_port(
        "mlx5", Span(5.0, Conditions(lost=10.0)), Span(1.0, Conditions(reset=True)), CALM
    )
    clock.now = START + 4.95
    assert (rdma(kernel)["out_of_sequence"], kernel.identity("class/infiniband/mlx5_0")) == (49, 0)
    clock.now = START + 5.5
    assert (rdma(kernel)["out_of_sequence"], kernel.identity("class/infiniband/mlx5_0")) == (0, 1)
    assert ethtool(kernel)["rx_prio3_packets"] > 0
    assert [(one.netdev, one.time) for one in kernel.world.resets] == [("eth0", START + 5)]


def test_another_speed_shows_in_the_link_and_in_the_pause_frames() -> None:
    slow = Conditions(speed=100 * 10**9, pauses=(Pause(3, RECEIVE, 1.0),))
    kernel, clock = one_port("mlx5", Span(10.0, slow))
    clock.now = START + 1
    assert kernel.ethtool_link("eth0")["speed"] == 12_500_000_000
    assert kernel.text("class/infiniband/mlx5_0/ports/1/rate") == "100 Gb/sec (4X EDR)"
    assert ethtool(kernel)["rx_prio3_pause"] == 5960


def test_dcb_follows_the_mask_and_counts_frames_in_the_right_direction() -> None:
    sent = Conditions(pauses=(Pause(3, TRANSMIT, 1.0),))
    kernel, clock = one_port("mlx5", Span(1.0, sent), Span(9.0, Conditions(lossless=(5,))))
    clock.now = START + 0.5
    pfc = kernel.dcb("eth0")["pfc"]
    assert pfc["prio_pfc"] == (False, False, False, True, False, False, False, False)
    assert (pfc["requests"][3], pfc["indications"][3]) == (11921, 0)
    clock.now = START + 2
    assert kernel.dcb("eth0")["pfc"]["prio_pfc"][3:6] == (False, False, True)


def test_missing_devices_and_files_cannot_be_read() -> None:
    kernel, _ = one_port("mlx5")
    device = kernel.rdma_devices()[0]
    for ask in (
        lambda: kernel.ethtool_statistics("eth9"),
        lambda: kernel.text("class/net/eth9/carrier"),
        lambda: kernel.rdma_statistics(device, 2),
        lambda: kernel.dcb("eth9"),
        lambda: one_port("ionic")[0].dcb("eth0"),
        lambda: kernel.ethtool_standard("eth0"),
        lambda: kernel.transceiver("eth0"),
    ):
        with pytest.raises(Absent):
            ask()


def test_broken_files_fail_each_in_its_own_way() -> None:
    kernel, _ = one_port("mlx5", faults=frozenset({FILES}))
    below = "class/infiniband/mlx5_0/ports/1"
    files = kernel.open_files([f"{below}/counters/port_rcv_errors", f"{below}/rate", f"{below}/state"])
    failed, garbage, fine = files.read()
    assert isinstance(failed, OSError)
    assert failed.errno == errno.EIO
    assert garbage == b"\xff\xfe?\n"
    assert fine == b"4: ACTIVE\n"
    assert files.read(skip=(0, 2)) == [None, garbage, None]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: simulate("storm", clock=Clock()), ("'storm'", "pfc-storm", "quiet")),
        (lambda: simulate("quiet", clock=Clock(), vendors=["cx7"]), ("'cx7'", "mlx5-lag", "ionic")),
        (lambda: simulate("quiet", clock=Clock(), vendors=[]), ("0 ports", "1 to 16")),
        (lambda: simulate("quiet", clock=Clock(), vendors=["ice"] * 17), ("17 ports", "1 to 16")),
        (lambda: simulate_script([ScriptedPort("cx7", ())], clock=Clock()), ("'cx7'", "mlx5")),
        (lambda: simulate_script([], clock=Clock()), ("0 ports",)),
    ],
)
def test_an_unknown_name_is_refused_in_one_line_with_the_known_ones(make, words) -> None:
    with pytest.raises(ScenarioError) as caught:
        make()
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words)


# Settings: every one that a real NIC of the vendor exposes is readable

UNREADABLE = {"ionic": 1}
"""Linux has no DCB of ionic, so the audit cannot read its priorities, as on a real one."""


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_vendor_exposes_its_settings(vendor, capsys) -> None:
    code = main(
        ["check", "settings", "--format=json", "--host.simulate=quiet", f"--host.simulate-ports={vendor}"]
    )
    counts = json.loads(capsys.readouterr().out)["summary"]
    unknown = UNREADABLE.get(vendor, 0)
    assert (code, counts["degraded"], counts["unknown"]) == (3 if unknown else 0, 0, unknown)


@pytest.mark.parametrize(("vendor", "series"), [("mlx5", 19), ("bnxt", 13), ("ionic", 15), ("ice", 0)])
def test_each_vendor_has_its_own_parameters(vendor, series, capsys) -> None:
    assert (
        main(["once", "--host.simulate=quiet", f"--host.simulate-ports={vendor}", "--metrics.set=full"]) == 0
    )
    assert len(re.findall(r"^roce_dcqcn_parameter\{", capsys.readouterr().out, re.MULTILINE)) == series
