"""Compared with other exporters in one guest: where both export a counter, the values are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import compare
import pytest
from daemon import value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nic import Nic

SAME = {
    "roce_port_receive_bytes_total": "node_infiniband_port_data_received_bytes_total",
    "roce_port_transmit_bytes_total": "node_infiniband_port_data_transmitted_bytes_total",
    "roce_port_receive_packets_total": "node_infiniband_port_packets_received_total",
    "roce_port_transmit_packets_total": "node_infiniband_port_packets_transmitted_total",
}


@pytest.fixture(scope="module")
def scraped(cards: dict[str, Nic]) -> Iterator[dict[str, dict[str, float]]]:
    """One scrape of every available exporter, after every counter got a unique number."""
    rivals = compare.start()
    compare.play()
    yield {rival.name: rival.scrape()[0] for rival in rivals}
    for rival in rivals:
        rival.process.kill()
        rival.process.wait()


def test_port_counters_are_those_of_the_newest_node_exporter(scraped: dict[str, dict[str, float]]) -> None:
    ours, theirs = scraped["roce_exporter"], scraped["node_exporter (newest)"]
    for name, other in SAME.items():
        assert value(ours, name, device="mlx5_0") == value(theirs, other, device="mlx5_0") is not None


def test_private_counters_are_those_of_node_exporter(scraped: dict[str, dict[str, float]]) -> None:
    """Found by value: of the numbers that node_exporter reports for mlx5, we report most of those that are not left out."""
    theirs = scraped["node_exporter (newest)"]
    assert value(theirs, "node_ethtool_received_prio3_pause", device="roce0") == value(
        scraped["roce_exporter"], "roce_pfc_receive_frames_total", device="mlx5_0", priority="3"
    )
