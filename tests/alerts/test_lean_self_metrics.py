"""Rules about sources and configuration with both forms of their series: one per port, as in full, or only what is not normal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from alert_promtool import needed_rules
from alert_starts import Series, fired

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("promtool")

TARGET = 'cluster="east",job="roce",instance="h1"'
PORT = 'device="mlx5_1",port="1",netdev="eth1"'
HEALTHY = ["1"] * 20
"""Ten minutes; then half an hour of fault, and ten minutes of health again."""
BROKEN = [*HEALTHY, *["0"] * 60, *HEALTHY]
FINE = ["1"] * 100
LATER = [*["_"] * 20, *BROKEN[20:]]
"""A series that begins when it is not normal, and then stays."""


def of(name: str, labels: str) -> str:
    return f"{name}{{{labels},{TARGET}}}"


SOURCES: dict[str, Series] = {
    "full": {
        of("roce_exporter_source_up", f'source="ethtool",{PORT}'): BROKEN,
        of("roce_exporter_source_up", 'source="ethtool",device="mlx5_0",port="1",netdev="eth0"'): FINE,
    },
    "lean": {
        of("roce_exporter_source_up", f'source="ethtool",{PORT}'): LATER,
        of("roce_exporter_source_up", 'source="ethtool"'): FINE,
    },
}
CHECKS: dict[str, Series] = {
    "full": {
        of("roce_config_check_ok", f'{PORT},check="trust"'): BROKEN,
        of("roce_config_check_ok", f'{PORT},check="mtu"'): FINE,
    },
    "lean": {of("roce_config_check_ok", f'{PORT},check="trust"'): LATER},
}


@pytest.mark.parametrize("metric_set", ["full", "lean"])
@pytest.mark.parametrize(
    ("alert", "histories", "label"),
    [("RoceSourceBroken", SOURCES, "source=ethtool"), ("RoceConfigCheckFailed", CHECKS, "check=trust")],
    ids=["a source", "a check"],
)
def test_what_is_broken_is_one_alert_that_names_the_port(
    alert: str, histories: dict[str, Series], label: str, metric_set: str, tmp_path: Path
) -> None:
    found = fired(tmp_path, needed_rules({alert}), histories[metric_set], 30, 30)
    (name,) = [name for name in found if name.startswith(alert)]
    for part in ("device=mlx5_1", "netdev=eth1", "port=1", label):
        assert part in name
    ((begin, end),) = found[name]
    assert begin >= 10 * 60
    assert 40 * 60 - 30 <= end <= 41 * 60
