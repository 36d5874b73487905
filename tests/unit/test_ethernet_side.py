"""PFC per network device and priority: series follow the mask, and what is no value makes none."""

import pytest
from kernel import Files, host
from observed import observe, samples

from roce_exporter.exposition import Format
from roce_exporter.host.recorded.recorded import RecordedKernel

LEG = 'device="mlx5_0",port="1",netdev="eth0"'


def eth0(**values: int) -> dict[str, object]:
    """The files of a network device with these private counters."""
    return {
        "rdma/link.json": [{"ifindex": 0, "ifname": "mlx5_0", "port": 1, "netdev": "eth0"}],
        "ethtool/eth0.driver": "driver: mlx5_core\n",
        "ethtool/eth0.stats": "".join(f"  {name}: {value}\n" for name, value in values.items()),
    }


async def shown(kernel: RecordedKernel, times: int = 1) -> list[dict[str, str]]:
    exporter, observations = await observe(kernel, times)
    return [samples(exporter.render(one, Format.TEXT)) for one in observations]


async def shown_once(files: Files) -> dict[str, str]:
    (found,) = await shown(host(files))
    return found


def pfc(found: dict[str, str]) -> dict[str, str]:
    short = {name: value for name, value in found.items() if name.startswith("roce_pfc_receive_frames_total")}
    return {
        name.partition('netdev="')[2].rstrip('"}').replace('",priority="', " "): value
        for name, value in short.items()
    }


async def test_moving_pfc_to_another_priority_moves_the_series() -> None:
    """The number of names stays the same: values of priority 3 must never be shown as priority 4, nor as 0."""
    moments = (
        eth0(rx_prio3_pause=1000, rx_packets=1),
        eth0(rx_prio4_pause=7, rx_packets=2),
        eth0(rx_prio3_pause=1001, rx_packets=3),
    )
    assert [pfc(found) for found in await shown(host(*moments), 3)] == [
        {"eth0 3": "1000"},
        {"eth0 4": "7"},
        {"eth0 3": "1001"},
    ]


@pytest.mark.parametrize(("value", "errors"), [(2**64 - 1, "0"), (2**64, "1"), (10**23 - 1, "1")])
async def test_all_ones_and_more_are_no_value_of_ethtool_either(value, errors) -> None:
    """The rule of `hw_counters`: all ones mean that the driver has no such value, and more than 64 bits are garbage."""
    found = await shown_once(eth0(rx_prio3_pause=value, rx_prio3_bytes=2**64 - 2))
    assert pfc(found) == {}
    source = '{source="ethtool",device="mlx5_0",netdev="eth0"}'
    assert found[f"roce_exporter_unreadable_values{source}"] == "1"
    assert found[f"roce_exporter_read_errors_total{source}"] == errors
    assert [value for name, value in found.items() if "priority_receive_bytes" in name] == [str(2**64 - 2)]


async def test_all_ones_are_no_pause_frames_and_a_duplicate_name_counts_once() -> None:
    pause = f"Statistics:\n  tx_pause_frames: {2**64 - 1}\n  rx_pause_frames: 7\n"
    twice = b"  rx_prio3_pause: 1\n  rx_prio3_pause: 99\n"
    found = await shown_once(eth0() | {"ethtool/eth0.pause": pause, "ethtool/eth0.stats": twice})
    assert found[f"roce_global_pause_receive_frames_total{{{LEG}}}"] == "7"
    assert f"roce_global_pause_transmit_frames_total{{{LEG}}}" not in found
    assert pfc(found) == {"eth0 3": "1"}
