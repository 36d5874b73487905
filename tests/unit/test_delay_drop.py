"""Delay drop is in debugfs, which only root can read: without that right it is absent, not broken."""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from roce_exporter.kernel import Absent
from roce_exporter.kernel.live import LiveKernel
from roce_exporter.model import Device
from roce_exporter.sources.delay_drop import DelayDrop

if TYPE_CHECKING:
    from pathlib import Path

DEVICE = Device("mlx5_0", "mlx5_core", "mlx5", pci="0000:3b:00.0")


def test_it_is_read_where_it_may_be_read(tmp_path: Path) -> None:
    place = tmp_path / "kernel/debug/mlx5/0000:3b:00.0/delay_drop"
    place.mkdir(parents=True)
    for name, text in (("num_timeout_events", "7"), ("num_rqs", "2"), ("timeout", "100000"), ("other", "x")):
        (place / name).write_text(f"{text}\n")
    (reading,) = DelayDrop(LiveKernel(str(tmp_path)), DEVICE).read(0.0)
    assert dict(zip(reading.names, reading.values, strict=True)) == {
        "num_timeout_events": 7,
        "num_rqs": 2,
        "timeout": 100000,
    }


class Forbidden(LiveKernel):
    """The errors that an unprivileged user gets."""

    def entries(self, path: str) -> tuple[str, ...]:
        raise PermissionError(errno.EACCES, "Permission denied", path)


@pytest.mark.parametrize("kernel", [LiveKernel, Forbidden])
def test_it_is_absent_where_it_is_missing_or_unreadable(tmp_path: Path, kernel: type[LiveKernel]) -> None:
    with pytest.raises(Absent):
        DelayDrop(kernel(str(tmp_path)), DEVICE).read(0.0)


def test_a_device_without_a_bus_has_no_value(tmp_path: Path) -> None:
    with pytest.raises(Absent):
        DelayDrop(LiveKernel(str(tmp_path)), replace(DEVICE, pci="")).read(0.0)
