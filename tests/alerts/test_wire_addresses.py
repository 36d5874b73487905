"""Whose address it is that a capture has seen: one port, or no port, because a wrong name is worse than none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from alert_joins import Check, always, differences, target

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("promtool")

PORTS = "sum by (instance, device, port, address) (port:roce_wire_address:info{})"
ONE, TWO, OTHER = "10.0.0.1", "10.0.0.2", "10.0.0.3"


def gid(address: str, instance: str, device: str = "mlx5_0", **target_of: str) -> str:
    """An entry of a host's GID table."""
    at = f'device="{device}",port="1",index="3",type="RoCE v2",netdev="ens1f0np0"'
    return target(f'roce_gid_info{{{at},address="{address}"}}', instance, **target_of)


def pair(source: str, destination: str, instance: str = "probe") -> str:
    """What a capture has seen."""
    labels = f'source="{source}",destination="{destination}"'
    return target(f"roce_wire_cnps_total{{{labels}}}", instance, "roce-wire")


def port(address: str, instance: str, device: str = "mlx5_0", jobs: int = 1) -> dict[str, float]:
    """The sample of a port; `jobs` scrape its host."""
    return {f'{{instance="{instance}",device="{device}",port="1",address="{address}"}}': jobs}


SEEN = pair(ONE, TWO)
SITUATIONS = {
    "source and destination": (
        [gid(ONE, "h1"), gid(TWO, "h2", "mlx5_3"), SEEN],
        port(ONE, "h1") | port(TWO, "h2", "mlx5_3"),
    ),
    "IPv6": ([gid("2001:db8::1", "h1"), pair("2001:db8::9", "2001:db8::1")], port("2001:db8::1", "h1")),
    "an address that no capture has seen": ([gid(OTHER, "h1"), SEEN], {}),
    "an address that no host has": ([SEEN], {}),
    "an address of two hosts": ([gid(ONE, "h1"), gid(ONE, "h2"), gid(TWO, "h2"), SEEN], port(TWO, "h2")),
    "an address of two ports of a host": ([gid(ONE, "h1"), gid(ONE, "h1", "mlx5_1"), SEEN], {}),
    "the same addresses in another cluster": ([gid(ONE, "h1", cluster="west"), SEEN], {}),
    "one host in two jobs": ([gid(ONE, "h1"), gid(ONE, "h1", job="roce-b"), SEEN], port(ONE, "h1", jobs=2)),
    "two captures of one pair": ([gid(ONE, "h1"), SEEN, pair(ONE, TWO, "probe2")], port(ONE, "h1")),
    "pairs without series of their own": ([gid(ONE, "h1"), pair("other", "other")], {}),
}


def test_the_port_of_an_address(tmp_path: Path) -> None:
    situations = {
        name: (always(*series), (Check(20, PORTS, found),)) for name, (series, found) in SITUATIONS.items()
    }
    assert not differences(tmp_path, "port:roce_wire_address", situations)
