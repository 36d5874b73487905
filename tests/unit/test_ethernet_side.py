"""PFC per network device and priority: series follow the mask, member ports of a LAG stay separate, a failure costs only itself."""

from __future__ import annotations

import errno
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from observed import observe, samples

from roce_exporter.collect import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.recording.moment import Moment
from roce_exporter.recording.recorded import RecordedKernel
from roce_exporter.recording.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Sequence

LINK = ({"ifindex": 0, "ifname": "mlx5_0", "port": 1, "netdev": "bond0"},)


def moment(stats: dict[str, dict[str, int]]) -> Moment:
    """A LAG over the network devices that `stats` names."""
    files = {"sys/class/net/bond0/bonding/slaves": " ".join(stats)}
    for netdev, values in stats.items():
        files[f"ethtool/{netdev}.driver"] = "driver: mlx5_core\n"
        files[f"ethtool/{netdev}.stats"] = "".join(
            f"     {name}: {value}\n" for name, value in values.items()
        )
    tree = Tree({path: text.encode() for path, text in files.items()})
    for path in tree.files:
        tree.add(path)
    return Moment(tree, {"link": LINK})


async def shown(
    moments: Sequence[Moment], kernel: type[RecordedKernel] = RecordedKernel
) -> list[dict[str, str]]:
    exporter, observations = await observe(kernel(moments), len(moments))
    return [samples(exporter.render(one, Format.TEXT)) for one in observations]


def pfc(found: dict[str, str]) -> dict[str, str]:
    short = {name: value for name, value in found.items() if name.startswith("roce_pfc_receive_frames_total")}
    return {
        name.partition('netdev="')[2].rstrip('"}').replace('",priority="', " "): value
        for name, value in short.items()
    }


async def test_moving_pfc_to_another_priority_moves_the_series() -> None:
    """The number of names stays the same: values of priority 3 must never be shown as priority 4, nor as 0."""
    before, after, back = await shown(
        [
            moment({"eth0": {"rx_prio3_pause": 1000, "rx_packets": 1}}),
            moment({"eth0": {"rx_prio4_pause": 7, "rx_packets": 2}}),
            moment({"eth0": {"rx_prio3_pause": 1001, "rx_packets": 3}}),
        ]
    )
    assert pfc(before) == {"eth0 3": "1000"}
    assert pfc(after) == {"eth0 4": "7"}
    assert pfc(back) == {"eth0 3": "1001"}


async def test_a_priority_without_pfc_has_no_series() -> None:
    (found,) = await shown([moment({"eth0": {"rx_prio3_bytes": 5, "rx_prio3_discards": 0}})])
    assert pfc(found) == {}
    assert found['roce_buffer_discards_total{device="mlx5_0",port="1",netdev="eth0",priority="3"}'] == "0"


async def test_the_member_ports_of_a_lag_are_distinguished() -> None:
    (found,) = await shown([moment({"eth0": {"rx_prio3_pause": 1}, "eth1": {"rx_prio3_pause": 2}})])
    assert pfc(found) == {"eth0 3": "1", "eth1 3": "2"}


@pytest.mark.parametrize(("value", "errors"), [(2**64 - 1, "0"), (2**64, "1"), (10**23 - 1, "1")])
async def test_all_ones_and_more_are_no_value_of_ethtool_either(value: int, errors: str) -> None:
    """The rule of `hw_counters`: all ones mean that the driver has no such value, and more than 64 bits are garbage."""
    (found,) = await shown([moment({"eth0": {"rx_prio3_pause": value, "rx_prio3_bytes": 2**64 - 2}})])
    assert pfc(found) == {}
    source = '{source="ethtool",device="mlx5_0",netdev="eth0"}'
    assert found[f"roce_exporter_unreadable_values{source}"] == "1"
    assert found[f"roce_exporter_read_errors_total{source}"] == errors
    assert [value for name, value in found.items() if "priority_receive_bytes" in name] == [str(2**64 - 2)]


async def test_all_ones_are_no_pause_frames_either() -> None:
    one = moment({"eth0": {"rx_prio3_bytes": 1}})
    one.tree.files["ethtool/eth0.pause"] = (
        f"Statistics:\n  tx_pause_frames: {2**64 - 1}\n  rx_pause_frames: 7\n".encode()
    )
    (found,) = await shown([one])
    port = '{device="mlx5_0",port="1",netdev="eth0"}'
    assert found[f"roce_global_pause_receive_frames_total{port}"] == "7"
    assert f"roce_global_pause_transmit_frames_total{port}" not in found


class OneMemberFails(RecordedKernel):
    """The second member port fails with the errno that the test sets."""

    number = errno.EIO

    def ethtool_statistics(self, netdev: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
        if netdev == "eth1":
            raise OSError(self.number, "refused", netdev)
        return super().ethtool_statistics(netdev)


async def test_a_failing_member_port_costs_only_itself() -> None:
    for number in (errno.EIO, errno.EPERM, errno.ENODEV, errno.ETIMEDOUT):
        OneMemberFails.number = number
        (found,) = await shown(
            [moment({"eth0": {"rx_prio3_pause": 1}, "eth1": {"rx_prio3_pause": 2}})], OneMemberFails
        )
        assert pfc(found) == {"eth0 3": "1"}
        state = 'roce_exporter_source_up{source="ethtool",device="mlx5_0",netdev="%s"}'
        assert found[state % "eth0"] == "1"
        assert found[state % "eth1"] == "0"


async def test_marks_by_switches_by_the_nic_and_on_tcp_are_three_metrics() -> None:
    (found,) = await shown([moment({"eth0": {"rx_prio3_marked": 5, "rx_ecn_mark": 6}})])
    assert (
        found['roce_nic_ecn_marked_packets_total{device="mlx5_0",port="1",netdev="eth0",priority="3"}'] == "5"
    )
    assert found['roce_tcp_ecn_marked_packets_total{device="mlx5_0",port="1",netdev="eth0"}'] == "6"
    assert not [name for name in found if name.startswith("roce_ecn_marked_packets_total")]


async def test_durations_are_seconds_and_stalls_are_ratios() -> None:
    values = {
        "tx_prio3_pause_duration": 1_500_001,
        "outbound_pci_stalled_wr": 37,
        "outbound_pci_stalled_wr_events": 212,
    }
    (found,) = await shown([moment({"eth0": values})])
    leg = 'device="mlx5_0",port="1",netdev="eth0"'
    assert found["roce_pfc_transmit_pause_seconds_total{" + leg + ',priority="3"}'] == "1.500001"
    assert found["roce_pcie_write_stalled_ratio{" + leg + "}"] == "0.37"
    assert found["roce_pcie_write_stalled_seconds_total{" + leg + "}"] == "212"


async def test_a_duplicate_name_counts_once() -> None:
    one = moment({"eth0": {"rx_prio3_pause": 1}})
    one.tree.files["ethtool/eth0.stats"] = b"  rx_prio3_pause: 1\n  rx_prio3_pause: 99\n"
    (found,) = await shown([one])
    assert pfc(found) == {"eth0 3": "1"}


class OneMemberHangs(RecordedKernel):
    """The second member port's driver never returns, as when it waits for firmware."""

    gate = threading.Event()

    def ethtool_statistics(self, netdev: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
        if netdev == "eth1":
            self.gate.wait(30)
        return super().ethtool_statistics(netdev)


async def test_a_hung_member_port_costs_only_itself() -> None:
    kernel = OneMemberHangs([moment({"eth0": {"rx_prio3_pause": 1}, "eth1": {"rx_prio3_pause": 2}})])
    collector = Collector(kernel, Settings(timeout=0.6, patience=0.05), time.monotonic)
    exporter = Exporter(collector)
    try:
        for _ in range(3):
            found = samples(exporter.render(await exporter.observe(0.6), Format.TEXT))
            assert pfc(found) == {"eth0 3": "1"}
            state = 'roce_exporter_source_up{source="ethtool",device="mlx5_0",netdev="%s"}'
            assert found[state % "eth0"] == "1"
            assert found[state % "eth1"] == "0"
    finally:
        kernel.gate.set()
        collector.close()


class EthernetFails(RecordedKernel):
    """Every Ethernet source fails."""

    def refuse(self, netdev: str) -> Any:
        raise OSError(errno.EIO, "refused", netdev)

    ethtool_statistics = ethtool_pause = ethtool_link = ethtool_fec = ethtool_standard = ethtool_settings = (
        dcb
    ) = refuse


async def test_whatever_fails_on_the_ethernet_side_the_rdma_side_is_served() -> None:
    one = moment({"eth0": {}})
    rdma = {
        **one.rdma,
        "statistic": ({"ifname": "mlx5_0", "port": 1, "np_cnp_sent": 7, "rp_cnp_handled": 1},),
    }
    (found,) = await shown([Moment(one.tree, rdma)], EthernetFails)
    assert found['roce_cnp_sent_total{device="mlx5_0",port="1"}'] == "7"
    down = [
        name for name, value in found.items() if name.startswith("roce_exporter_source_up") and value == "0"
    ]
    assert len(down) == 7
