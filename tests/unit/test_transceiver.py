"""Transceivers: three memory layouts with the same meaning. The pages follow the tables of the documents."""

import re
import struct

import pytest

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.transceiver import CMIS, QSFP, SFP, PageAddress, read_transceiver
from roce_exporter.host.recorded.ethtool_text import parse_transceiver, print_transceiver

Part = tuple[int, int]
"""I2C address, and page; the lower half of a module's memory is page -1."""


class Module:
    """A module's memory, 128 bytes a part. It records the requested parts."""

    def __init__(self, identifier: int) -> None:
        self.parts: dict[Part, bytearray] = {}
        self.asked: list[PageAddress] = []
        self.put(0, bytes([identifier]))

    def put(self, offset: int, data: bytes, page: int = 0, i2c: int = 0x50) -> None:
        part = self.parts.setdefault((i2c, page if offset >= 128 else -1), bytearray(128))
        part[offset % 128 : offset % 128 + len(data)] = data

    def words(self, offset: int, *values: int, page: int = 0, i2c: int = 0x50) -> None:
        self.put(offset, struct.pack(f">{len(values)}H", *(value & 0xFFFF for value in values)), page, i2c)

    def read(self, place: PageAddress) -> bytes:
        self.asked.append(place)
        part = self.parts.get((place.i2c, place.page if place.offset >= 128 else -1), bytearray(128))
        return bytes(part[place.offset % 128 :][: place.length])


def qsfp28() -> Module:
    module = Module(0x11)
    module.words(22, 36 * 256 + 128)
    module.words(26, 32891)
    module.words(34, 7562, 7000, 0, 6999)  # light received
    module.words(42, 3375, 3376, 3377, 3378)  # laser current
    module.words(50, 8519, 8520, 8521, 8522)  # light sent
    module.put(220, bytes([0x0C]))
    module.words(128, 75 * 256, -5 * 256, page=3)
    module.words(144, 36300, 29700, page=3)
    module.words(176, 21878, 500, page=3)
    module.words(184, 5000, 1000, page=3)
    module.words(192, 21878, 700, page=3)
    return module


def lanes(name: str, *values: int) -> dict[str, int]:
    return {f"{name}_{lane}": value for lane, value in enumerate(values, 1)}


def alarms(**limits: tuple[int, int]) -> dict[str, int]:
    """The upper and the lower limit of each."""
    return {
        f"{name}_{end}_alarm": value
        for name, both in limits.items()
        for end, value in zip(("high", "low"), both, strict=True)
    }


def test_a_qsfp28_by_the_tables_of_sff_8636() -> None:
    assert read_transceiver(qsfp28().read) == {
        "temperature": 36_500_000,
        "voltage": 3_289_100,
        **lanes("receive_power", 756_200, 700_000, 0, 699_900),
        **lanes("bias", 6750, 6752, 6754, 6756),
        **lanes("transmit_power", 851_900, 852_000, 852_100, 852_200),
        **alarms(
            temperature=(75_000_000, -5_000_000),
            voltage=(3_630_000, 2_970_000),
            receive_power=(2_187_800, 50_000),
            bias=(10_000, 2000),
            transmit_power=(2_187_800, 70_000),
        ),
    }


@pytest.mark.parametrize(
    ("offset", "data", "lacking"),
    [(220, b"\0", "transmit_power"), (2, b"\x04", "alarm"), (147, b"\xa0", r"power|bias")],
    ids=["no transmit monitors", "flat memory", "copper"],
)
def test_what_a_qsfp28_lacks_is_left_out(offset, data, lacking) -> None:
    """Pages that a flat-memory module lacks are not requested."""
    module = qsfp28()
    whole = read_transceiver(module.read)
    module.asked.clear()
    module.put(offset, data)
    found = read_transceiver(module.read)
    assert found == {name: value for name, value in whole.items() if not re.search(lacking, name)}
    assert ({place.page for place in module.asked} == {0}) is (lacking == "alarm")


@pytest.mark.parametrize("identifier", sorted(QSFP | CMIS | SFP))
def test_a_passive_cable_has_no_values_instead_of_zero(identifier) -> None:
    with pytest.raises(Absent):
        read_transceiver(Module(identifier).read)


def test_an_unknown_kind_is_absent() -> None:
    with pytest.raises(Absent, match="0x02"):
        read_transceiver(Module(0x02).read)


def cmis(scaling: int = 0x08) -> Module:
    module = Module(0x18)
    module.words(14, -2 * 256)
    module.words(16, 33012)
    module.put(210, b"\xf0")  # lanes 5 to 8 are absent
    module.put(159, bytes([0x03, 0x07 | scaling]), page=1)
    module.words(128, 80 * 256, -10 * 256, page=2)
    module.words(136, 36300, 29700, page=2)
    module.words(176, 50118, 1862, page=2)
    module.words(184, 3750, 750, page=2)
    module.words(192, 50118, 1479, page=2)
    module.words(154, 15921, 16003, 15587, 15718, 9, 9, 9, 9, page=0x11)
    module.words(170, 1872, 1870, 1875, 1872, 9, 9, 9, 9, page=0x11)
    module.words(186, 14312, 13999, 0, 14120, 9, 9, 9, 9, page=0x11)
    return module


def test_a_qsfp_dd_by_the_tables_of_cmis() -> None:
    """The laser current is 2 microamperes a step, multiplied by the factor 2."""
    assert read_transceiver(cmis().read) == {
        "temperature": -2_000_000,
        "voltage": 3_301_200,
        **lanes("transmit_power", 1_592_100, 1_600_300, 1_558_700, 1_571_800),
        **lanes("bias", 7488, 7480, 7500, 7488),
        **lanes("receive_power", 1_431_200, 1_399_900, 0, 1_412_000),
        **alarms(
            temperature=(80_000_000, -10_000_000),
            voltage=(3_630_000, 2_970_000),
            transmit_power=(5_011_800, 186_200),
            bias=(15_000, 3000),
            receive_power=(5_011_800, 147_900),
        ),
    }


@pytest.mark.parametrize(("scaling", "current"), [(0x00, 3744), (0x08, 7488), (0x10, 14976)])
def test_the_laser_current_is_scaled_by_the_modules_factor(scaling, current) -> None:
    module = cmis(scaling)
    assert read_transceiver(module.read)["bias_1"] == current
    module.put(160, b"\0", page=1)
    names = {name.split("_")[0] for name in read_transceiver(module.read)}
    assert names == {"temperature", "voltage"}, "without optical monitors"
    cable = cmis()
    cable.put(2, b"\x80")
    assert read_transceiver(cable.read).keys() == {"temperature", "voltage"}, "a cable has one page"


def sfp(kind: int) -> Module:
    module = Module(0x03)
    module.put(92, bytes([kind]))
    module.words(0, 90 * 256, -10 * 256, i2c=0x51)
    module.words(16, 5250, 1000, i2c=0x51)
    module.words(96, 33 * 256 + 32, 32870, 3009, 5881, 5000, i2c=0x51)
    return module


def test_an_sfp_by_the_tables_of_sff_8472() -> None:
    assert read_transceiver(sfp(0x60).read) == {
        "temperature": 33_125_000,
        "voltage": 3_287_000,
        "bias_1": 6018,
        "transmit_power_1": 588_100,
        "receive_power_1": 500_000,
        **alarms(temperature=(90_000_000, -10_000_000), bias=(10_500, 2000)),
    }


def test_an_sfp_that_leaves_the_calibration_to_the_host() -> None:
    module = sfp(0x50)
    module.put(56, struct.pack(">5f", 0, 0, 0.0001, 0.5, 3), i2c=0x51)
    for at, slope, offset in ((76, 512, 1), (80, 128, -1), (84, 256, 256), (88, 256, -70)):
        module.words(at, slope, offset, i2c=0x51)
    found = read_transceiver(module.read)
    assert found["bias_1"] == (2 * 3009 + 1) * 2
    assert found["transmit_power_1"] == round((0.5 * 5881 - 1) * 100)
    assert found["temperature"] == 34_125_000
    assert found["voltage"] == 32_800 * 100
    assert found["receive_power_1"] == pytest.approx((0.0001 * 5000**2 + 0.5 * 5000 + 3) * 100, abs=1)


@pytest.mark.parametrize("kind", [0x00, 0x64])
def test_an_sfp_without_diagnostics_or_behind_another_address_is_absent(kind) -> None:
    module = sfp(kind)
    with pytest.raises(Absent):
        read_transceiver(module.read)
    assert {place.i2c for place in module.asked} == {0x50}


def test_printed_values_are_read_back_unchanged_and_other_lines_are_ignored() -> None:
    for module in (qsfp28(), cmis(), sfp(0x60)):
        found = read_transceiver(module.read)
        assert parse_transceiver(print_transceiver(found)) == found
    text = "\tLaser bias current high alarm (Chan 1): Off\n\tMax power : 12.00W\n\tVendor PN : V 1\n"
    assert parse_transceiver(text) == {}
