"""The sources of a device: netlink first, sysfs for values that it lacks, one merged reading; and each fails alone."""

import errno
from dataclasses import replace
from pathlib import Path

import pytest
from descriptors import open_below
from hypothesis import given
from hypothesis import strategies as st
from kernel import Faults, host

from roce_exporter.exposition import Format, Renderer
from roce_exporter.host.inventory import Listed, describe, list_devices
from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.recorded.recorded import RecordedKernel
from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.host.sources import NAMES, SLOW, Reader, open_readers
from roce_exporter.host.sources.files import FileReader
from roce_exporter.host.sources.netdev import fec_numbers
from roce_exporter.host.sources.state_files import (
    delay_drop_reader,
    parse_speed,
    parse_total,
    parse_width,
    sensors_reader,
)
from roce_exporter.model import Device, DeviceReadings, Port, Reading
from roce_exporter.normalise.normaliser import Normaliser

MLX5 = "sys/class/infiniband/mlx5_0"
PORT = f"{MLX5}/ports/1"
FILES: dict[str, object] = {
    f"{PORT}/state": "4: ACTIVE",
    f"{PORT}/hw_counters/np_cnp_sent": "5",
    f"{PORT}/hw_counters/rp_cnp_handled": "6",
    f"{PORT}/hw_counters/lifespan": "10",
}
BOTH = {"np_cnp_sent": 50, "rp_cnp_handled": 60}
SYSFS = {"np_cnp_sent": 5, "rp_cnp_handled": 6}
EIO = OSError(errno.EIO, "firmware")


def with_netlink(statistics: dict[str, int], files: dict[str, object] = FILES) -> RecordedKernel:
    row = {"ifname": "mlx5_0", "port": 1} | statistics
    devices = [{"ifindex": 0, "ifname": "mlx5_0"}]
    return host(files | {"rdma/dev.json": devices, "rdma/statistic.json": [row]})


def readers_of(kernel: RecordedKernel | LiveKernel, *disabled: str) -> dict[str, Reader]:
    device = describe(kernel, Listed("mlx5_0", 0))
    return {reader.source: reader for reader in open_readers(kernel, device, disabled)}


def numbers(*readings: Reading) -> dict[str, int | None]:
    return {
        name: value for reading in readings for name, value in zip(reading.names, reading.values, strict=True)
    }


def found(reader: Reader, now: float = 0.0) -> dict[str, int | None]:
    return numbers(*reader.read(now))


def write(root: Path, files: dict[str, object]) -> LiveKernel:
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if str(text).startswith("-> "):
            place.symlink_to(str(text).removeprefix("-> "))
        else:
            place.write_text(f"{text}\n")
    return LiveKernel(str(root / "sys"), netlink=False)


# Netlink and sysfs


def test_values_of_netlink_are_not_read_from_sysfs_again() -> None:
    kernel = with_netlink({"np_cnp_sent": 50})
    faults, readers = Faults(kernel), readers_of(kernel)
    assert found(readers["rdma_netlink"]) == {"np_cnp_sent": 50}
    faults.calls.clear()
    assert found(readers["hw_counters"]) == {"rp_cnp_handled": 6}
    assert [path.rpartition("/")[2] for name, path in faults.calls if name == "content"] == ["rp_cnp_handled"]


@pytest.mark.parametrize("reported", [BOTH, {"np_cnp_sent": 50}])
def test_sysfs_replaces_netlink_while_it_fails_and_its_files_are_closed_again(tmp_path, reported) -> None:
    kernel, live = with_netlink(reported), write(tmp_path, FILES)
    faults = Faults(kernel, open_files=live.open_files)
    readers, held = readers_of(kernel), []
    lacking = {name: value for name, value in SYSFS.items() if name not in reported}
    for failure, netlink, sysfs in ((None, reported, lacking), (EIO, {}, SYSFS), (None, reported, lacking)):
        faults["rdma_statistics"] = failure
        assert found(readers["rdma_netlink"]) == netlink
        assert found(readers["hw_counters"]) == sysfs
        held.append(len(open_below(tmp_path)))
    readers["hw_counters"].close()
    assert held[0] == held[2] == held[1] - len(reported)


def test_files_that_netlink_reports_again_leave_the_quarantine() -> None:
    """A file stays in quarantine until it is read again, which does not happen while netlink reports its value."""
    kernel = with_netlink(BOTH)
    faults = Faults(kernel, content=EIO, rdma_statistics=EIO)
    readers = readers_of(kernel)
    statistics, files = readers["rdma_netlink"], readers["hw_counters"]
    for now in range(100):
        (reading,) = statistics.read(now)
        files.read(now)
    assert (reading.port, reading.names, reading.losses) == (1, (), (("", "EIO"),))
    assert files.quarantined == 2
    faults["rdma_statistics"] = None
    statistics.read(100.0)
    files.read(100.0)
    assert files.quarantined == 0


@pytest.mark.parametrize("forbidden", [False, True])
def test_without_netlink_the_counters_are_read_from_sysfs(forbidden) -> None:
    """One that is forbidden, as with systemd's RestrictAddressFamilies, is broken and not absent."""
    kernel = host(FILES)
    if forbidden:
        Faults(kernel, rdma_devices=OSError(errno.EAFNOSUPPORT, "forbidden"))
    readers = readers_of(kernel)
    for source in ("rdma_netlink", "resources", "optional_counters"):
        with pytest.raises(OSError, match="RDMA netlink" if forbidden else None) as caught:
            readers[source].read(0.0)
        assert isinstance(caught.value, Absent) is not forbidden
    assert found(readers["hw_counters"]) == SYSFS


def test_all_ones_from_netlink_are_no_value() -> None:
    kernel = with_netlink({"np_cnp_sent": 2**64 - 1, "rp_cnp_handled": 1}, {})
    (reading,) = readers_of(kernel)["rdma_netlink"].read(0.0)
    assert (reading.values, reading.losses) == ((None, 1), (("np_cnp_sent", "not_available"),))


def test_names_stay_the_same_object_and_a_disabled_source_is_omitted() -> None:
    readers = readers_of(with_netlink({"np_cnp_sent": 50}), "counters", "port")
    assert {"rdma_netlink", "hw_counters", "resources"} <= readers.keys() <= set(NAMES) - {"counters", "port"}
    for reader in readers.values():
        try:
            first, second = reader.read(0.0), reader.read(1.0)
        except Absent:
            continue
        assert all(a.names is b.names for a, b in zip(first, second, strict=True))


def test_the_counters_of_qedr_are_a_stub_that_is_never_read(tmp_path) -> None:
    files: dict[str, object] = {
        f"{PORT}/counters/symbol_error": "-> /sys/class/net/lo/speed",
        f"{MLX5}/device": "-> ../../../devices/0000:01:00.0",
        "sys/devices/0000:01:00.0/driver": "-> ../../bus/pci/drivers/qede",
    }
    kernel = write(tmp_path, files)
    assert describe(kernel, Listed("mlx5_0", 0)).dialect == "qedr"
    with pytest.raises(Absent):
        readers_of(kernel)["counters"].read(0.0)


def test_what_may_hang_for_long_is_read_between_scrapes() -> None:
    """Under the lock of all network configuration, and while firmware replies."""
    assert {"addresses", "mac_address", "devlink", "devlink_info", "devlink_vnic"} <= SLOW


# PCIe and network devices

AER = "RxErr 0\nBadTLP 2\nBadDLLP 1\nRollover 0\nTimeout 0\nNonFatalErr 0\nCorrIntErr 0\nHeaderOF 0\nTOTAL_ERR_COR 3"
SLOT: dict[str, object] = {
    f"{PORT}/state": "4: ACTIVE",
    f"{PORT}/gids/0": "0000:0000:0000:0000:0000:ffff:c612:0001",
    f"{PORT}/gid_attrs/ndevs/0": "bond0",
    f"{MLX5}/device/current_link_width": "8",
    f"{MLX5}/device/max_link_width": "16",
    f"{MLX5}/device/current_link_speed": "16.0 GT/s PCIe",
    f"{MLX5}/device/aer_dev_correctable": AER,
    "sys/class/net/bond0/bonding/slaves": "eth2 eth3",
    "sys/class/net/eth2/carrier_changes": "4",
    "sys/class/net/eth2/statistics/rx_dropped": "5",
    "sys/class/net/eth3/carrier_changes": "6",
}


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_speed, b"16.0 GT/s PCIe\n", 16_000_000_000),
        (parse_speed, b"2.5 GT/s PCIe\n", 2_500_000_000),
        (parse_speed, b"32 GT/s\n", 32_000_000_000),
        (parse_speed, b"Unknown\n", "not_available"),
        (parse_speed, b"Unknown speed\n", "not_available"),
        (parse_speed, b"fast\n", "garbage"),
        (parse_speed, b"", "empty"),
        (parse_width, b"16\n", 16),
        (parse_width, b"0\n", "not_available"),
        (parse_width, b"255\n", "not_available"),
        (parse_width, b"x\n", "garbage"),
        (parse_total, AER.encode(), 3),
        (parse_total, b"TOTAL_ERR_FATAL 0\n", 0),
        (parse_total, b"BadTLP 2\n", "garbage"),
    ],
)
def test_texts_of_a_slot(parse, text, value) -> None:
    assert parse(text) == value


@given(st.binary(max_size=100))
def test_no_bytes_break_a_parser(text) -> None:
    for parse in (parse_speed, parse_width, parse_total):
        assert isinstance(parse(text), int | str)


def test_the_slot_and_each_member_port_of_a_lag_are_read_and_the_bond_is_not() -> None:
    kernel = host(SLOT)
    readers = open_readers(kernel, describe(kernel, Listed("mlx5_0", 0)))
    by_netdev = {one.netdev: one for one in readers if one.source == "netdev"}
    assert {netdev: found(reader) for netdev, reader in by_netdev.items()} == {
        "eth2": {"carrier_changes": 4, "rx_dropped": 5},
        "eth3": {"carrier_changes": 6},
    }
    (slot,) = (one for one in readers if one.source == "pcie")
    assert found(slot) == {
        "current_link_speed": 16_000_000_000,
        "current_link_width": 8,
        "max_link_width": 16,
        "aer_dev_correctable": 3,
    }
    bare = host({f"{PORT}/state": "4: ACTIVE"})
    others = open_readers(bare, describe(bare, Listed("mlx5_0", 0)))
    assert not [one for one in others if one.netdev]
    with pytest.raises(Absent):
        readers_of(bare)["pcie"].read(0.0)


# Delay drop: in debugfs, which only root can read

DEVICE = Device("mlx5_0", "mlx5_core", "mlx5", pci="0000:3b:00.0", ports=(Port(1, "Ethernet"),))
DROPS = "sys/kernel/debug/mlx5/0000:3b:00.0/delay_drop"


def test_delay_drop_is_read_where_it_may_be_read(tmp_path) -> None:
    texts = {"num_timeout_events": "7", "num_rqs": "2", "timeout": "100000", "other": "x"}
    kernel = write(tmp_path, {f"{DROPS}/{name}": text for name, text in texts.items()})
    expected = {"num_timeout_events": 7, "num_rqs": 2, "timeout": 100000}
    assert numbers(*delay_drop_reader(kernel, DEVICE).read(0.0)) == expected
    Faults(kernel, entries=PermissionError(errno.EACCES, "Permission denied"))
    for device, where in ((DEVICE, kernel), (DEVICE, host(FILES)), (replace(DEVICE, pci=""), host(FILES))):
        with pytest.raises(Absent):
            delay_drop_reader(where, device).read(0.0)


# Temperatures by hwmon


def sensors(**files: str) -> FileReader:
    below = f"{MLX5}/device/hwmon/hwmon3"
    return sensors_reader(host({f"{below}/{name}": text for name, text in files.items()} | FILES), DEVICE)


def test_each_sensor_has_its_label_or_the_name_of_its_channel() -> None:
    asic = {"temp1_input": "58000\n", "temp1_label": "asic\n", "temp1_crit": "105000\n"}
    (reading,) = sensors(**asic, temp2_input="-4500\n").read(0)
    expected = {"critical_asic": 105_000, "temperature_asic": 58_000, "temperature_temp2": -4500}
    assert numbers(reading) == expected
    for other in ({}, {"name": "mlx5", "fan1_input": "3"}):
        with pytest.raises(Absent):
            sensors(**other).read(0)


@pytest.mark.parametrize("text", ["", "hot", "5.5", "99999999999"])
def test_a_sensor_without_a_number_has_no_value_and_is_counted(text) -> None:
    (reading,) = sensors(temp1_input=text, temp2_input="1000").read(0)
    assert reading.values == (None, 1000)
    assert [loss.name for loss in reading.losses] == ["temperature_temp1"]


# FEC

BINS = {
    "uncorrectable_blocks": 4,
    "fec_symbols_err_0": 445,
    "fec_symbols_err_0_lane_0": 345,
    "fec_symbols_err_0_lane_1": 100,
    "fec_symbols_err_1_to_3": 12,
    "fec_symbols_err_4_to_15": 2,
}


def test_the_kernels_bins_become_a_histogram_and_those_of_lanes_stay() -> None:
    assert fec_numbers({"corrected_blocks": 123}) == {"corrected_blocks": 123}
    values = fec_numbers(BINS)
    assert values["uncorrectable_blocks"] == 4
    reading = Reading("fec", "mlx5_0", 1, tuple(values), tuple(values.values()), (), "eth0")
    normaliser = Normaliser()
    samples = normaliser.normalise(DeviceReadings(DEVICE, (reading,)))
    text = Renderer().render((samples,), Format.OPENMETRICS).decode()
    where = 'device="mlx5_0",port="1",netdev="eth0"'
    shown = ("roce_phy_fec_codeword_", "roce_phy_fec_lane_")
    assert [line for line in text.splitlines() if line.startswith(shown)] == [
        f'roce_phy_fec_codeword_errors_bucket{{{where},le="0"}} 445',
        f'roce_phy_fec_codeword_errors_bucket{{{where},le="3"}} 457',
        f'roce_phy_fec_codeword_errors_bucket{{{where},le="15"}} 459',
        f'roce_phy_fec_codeword_errors_bucket{{{where},le="+Inf"}} 459',
        f'roce_phy_fec_lane_codewords_total{{{where},lane="0",low="0",high="0"}} 345',
        f'roce_phy_fec_lane_codewords_total{{{where},lane="1",low="0",high="0"}} 100',
    ]
    assert normaliser.plans["mlx5_0"].unmapped == ()


def test_the_names_are_those_of_the_readers_in_their_order() -> None:
    kernel = simulate("quiet", clock=lambda: 0.0)
    device = describe(kernel, list_devices(kernel)[0])
    assert tuple(dict.fromkeys(one.source for one in open_readers(kernel, device))) == NAMES
