"""The PCIe slot and the network devices: read per device; unreadable values are omitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_exporter.inventory import Listed, describe
from roce_exporter.kernel import Absent
from roce_exporter.kernel.live import LiveKernel
from roce_exporter.sources import open_readers
from roce_exporter.sources.pcie import parse_speed, parse_total, parse_width

if TYPE_CHECKING:
    from pathlib import Path

    from roce_exporter.sources import Reader

AER = "RxErr 0\nBadTLP 2\nBadDLLP 1\nRollover 0\nTimeout 0\nNonFatalErr 0\nCorrIntErr 0\nHeaderOF 0\nTOTAL_ERR_COR 3\n"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"16.0 GT/s PCIe\n", 16_000_000_000),
        (b"2.5 GT/s PCIe\n", 2_500_000_000),
        (b"32 GT/s\n", 32_000_000_000),
        (b"Unknown\n", "not_available"),
        (b"Unknown speed\n", "not_available"),
        (b"fast\n", "garbage"),
        (b"", "empty"),
    ],
)
def test_speeds_are_transfers_per_second(text: bytes, found: int | str) -> None:
    assert parse_speed(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [(b"16\n", 16), (b"0\n", "not_available"), (b"255\n", "not_available"), (b"x\n", "garbage")],
)
def test_a_function_of_unknown_width_has_no_width(text: bytes, found: int | str) -> None:
    assert parse_width(text) == found


def test_the_sum_of_an_aer_file_is_its_last_line() -> None:
    assert parse_total(AER.encode()) == 3
    assert parse_total(b"TOTAL_ERR_FATAL 0\n") == 0
    assert parse_total(b"BadTLP 2\n") == "garbage"


@given(st.binary(max_size=100))
def test_no_bytes_break_a_parser(text: bytes) -> None:
    for parse in (parse_speed, parse_width, parse_total):
        assert isinstance(parse(text), int | str)


def write(root: Path, files: dict[str, str]) -> dict[tuple[str, str], Reader]:
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{text}\n")
    kernel = LiveKernel(str(root), netlink=False)
    device = describe(kernel, Listed("mlx5_bond_0", 0))
    return {(reader.source, reader.netdev): reader for reader in open_readers(kernel, device)}


BELOW = "class/infiniband/mlx5_bond_0"
HOST = {
    f"{BELOW}/ports/1/state": "4: ACTIVE",
    f"{BELOW}/ports/1/gids/0": "0000:0000:0000:0000:0000:ffff:c612:0001",
    f"{BELOW}/ports/1/gid_attrs/ndevs/0": "bond0",
    f"{BELOW}/device/current_link_width": "8",
    f"{BELOW}/device/max_link_width": "16",
    f"{BELOW}/device/current_link_speed": "16.0 GT/s PCIe",
    f"{BELOW}/device/aer_dev_correctable": AER.strip(),
    "class/net/bond0/bonding/slaves": "eth2 eth3",
    "class/net/eth2/carrier_changes": "4",
    "class/net/eth2/statistics/rx_dropped": "5",
    "class/net/eth3/carrier_changes": "6",
}


def test_the_slot_is_read(tmp_path: Path) -> None:
    (reading,) = write(tmp_path, HOST)["pcie", ""].read(0.0)
    assert dict(zip(reading.names, reading.values, strict=True)) == {
        "current_link_speed": 16_000_000_000,
        "current_link_width": 8,
        "max_link_width": 16,
        "aer_dev_correctable": 3,
    }


def test_the_member_ports_of_a_lag_are_read_separately_and_the_bond_is_not(tmp_path: Path) -> None:
    readers = write(tmp_path, HOST)
    found = {
        netdev: {
            name: value
            for reading in readers["netdev", netdev].read(0.0)
            for name, value in zip(reading.names, reading.values, strict=True)
        }
        for source, netdev in readers
        if source == "netdev"
    }
    assert found == {"eth2": {"carrier_changes": 4, "rx_dropped": 5}, "eth3": {"carrier_changes": 6}}


def test_a_device_without_a_bus_has_no_slot(tmp_path: Path) -> None:
    readers = write(tmp_path, {f"{BELOW}/ports/1/state": "4: ACTIVE"})
    with pytest.raises(Absent):
        readers["pcie", ""].read(0.0)
    assert not [source for source, netdev in readers if netdev]
