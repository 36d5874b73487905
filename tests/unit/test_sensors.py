"""Temperatures by hwmon: named by the driver's label; one bad sensor costs only itself."""

from __future__ import annotations

import pytest

from roce_exporter.kernel import Absent
from roce_exporter.model import Device
from roce_exporter.recording.moment import Moment
from roce_exporter.recording.recorded import RecordedKernel
from roce_exporter.recording.tree import Tree
from roce_exporter.sources.sensors import Sensors


def host(**files: str) -> RecordedKernel:
    tree = Tree()
    for name, text in files.items():
        path = f"sys/class/infiniband/mlx5_0/device/hwmon/hwmon3/{name}"
        tree.files[path] = text.encode()
        tree.add(path)
    return RecordedKernel([Moment(tree, {})])


def sensors(kernel: RecordedKernel) -> Sensors:
    return Sensors(kernel, Device("mlx5_0", "mlx5_core", "mlx5"))


def test_each_sensor_has_its_label_or_the_name_of_its_channel() -> None:
    kernel = host(temp1_input="58000\n", temp1_label="asic\n", temp1_crit="105000\n", temp2_input="-4500\n")
    (reading,) = sensors(kernel).read(0)
    assert dict(zip(reading.names, reading.values, strict=True)) == {
        "critical_asic": 105_000,
        "temperature_asic": 58_000,
        "temperature_temp2": -4500,
    }


@pytest.mark.parametrize("text", ["", "hot", "5.5", "99999999999"])
def test_a_sensor_without_a_number_has_no_value_and_is_counted(text: str) -> None:
    (reading,) = sensors(host(temp1_input=text, temp2_input="1000")).read(0)
    assert reading.values == (None, 1000)
    assert [loss.name for loss in reading.losses] == ["temperature_temp1"]


def test_a_driver_without_sensors_is_absent() -> None:
    with pytest.raises(Absent):
        sensors(host()).read(0)
    with pytest.raises(Absent):
        sensors(host(name="mlx5", fan1_input="3")).read(0)
