"""ethtool over generic netlink: attributes missing in a reply have no value, and no reply breaks the decoders."""

import errno
import struct

import pytest
from netlink_dumps import FakeKernel

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.ethtool_netlink import EthtoolNetlink
from roce_exporter.host.kernel.netlink import Malformed, Message, encode_attribute, encode_message, encode_u32
from roce_exporter.host.kernel.transceiver import PageAddress

FAMILY = 0x15


def u8(kind: int, value: int) -> bytes:
    return encode_attribute(kind, bytes([value]))


def u64(kind: int, *values: int) -> bytes:
    return encode_attribute(kind, struct.pack(f"={len(values)}Q", *values))


def ethtool(
    answers: dict[int, bytes | int], family: bytes | None = encode_attribute(1, struct.pack("=H", FAMILY))
) -> tuple[EthtoolNetlink, FakeKernel]:
    """Generic netlink whose ethtool family returns these replies by command, or an errno."""

    def answer(request: Message) -> list[bytes]:
        command = request.payload[0]
        found = family if request.kind == 16 else answers.get(command, errno.EOPNOTSUPP)
        if found is None:
            return [encode_message(Message(2, 0, 0, 0, bytes(4)))]
        if isinstance(found, int):
            return [encode_message(Message(2, 0, 0, 0, struct.pack("=i", -found)))]
        return [encode_message(Message(request.kind, 0, 0, 0, struct.pack("=BBH", command, 1, 0) + found))]

    kernel = FakeKernel(answer)
    return EthtoolNetlink(kernel), kernel


def ask(answers: dict[int, bytes | int]) -> EthtoolNetlink:
    return ethtool(answers)[0]


@pytest.mark.parametrize(
    "family", [None, b"", u8(1, FAMILY), encode_u32(1, 1 << 16), u64(1, FAMILY)], ids=range(5)
)
def test_an_answer_without_a_number_of_the_family_is_malformed(family) -> None:
    """None: the kernel acknowledges the query and sends no reply."""
    with pytest.raises(Malformed, match="no number of the ethtool family"):
        ethtool({}, family)[0].pause("eth0")


def test_pause_with_and_without_its_counters() -> None:
    switches = u8(2, 0) + u8(3, 1) + u8(4, 1)
    found = {"autonegotiate": 0, "receive": 1, "transmit": 1}
    assert ask({21: switches}).pause("eth0") == found
    counted = switches + encode_attribute(5, u64(2, 2) + u64(3, 1) + u64(4, 9))
    counters = {"transmit_frames": 2, "receive_frames": 1, "transmit_storm_events": 9}
    assert ask({21: counted}).pause("eth0") == found | counters


def test_the_link_is_read_from_two_answers() -> None:
    state = u8(2, 1) + encode_u32(7, 3)
    modes = encode_u32(5, 200_000) + u8(6, 1) + encode_u32(9, 4)
    assert ask({6: state, 4: modes}).link("eth0") == {
        "up": 1,
        "down_events": 3,
        "speed": 25_000_000_000,
        "full_duplex": 1,
        "lanes": 4,
    }
    assert ask({6: u8(2, 0) + u8(5, 4)}).link("eth0") == {"up": 0, "extended_state": 4}
    why = {"up": 0, "extended_state": 0, "extended_substate": 6}
    assert ask({6: u8(2, 0) + u8(5, 0) + u8(6, 6)}).link("eth0") == why
    unknown = encode_u32(5, 0xFFFFFFFF) + u8(6, 255) + encode_u32(9, 0)
    assert ask({6: u8(2, 1), 4: unknown}).link("eth0") == {"up": 1}


@pytest.mark.parametrize(
    "counters",
    [
        u64(2, 123, 100, 23) + u64(3, 4),  # the first of an array of lanes is the whole port
        u64(2, 123)
        + u64(3, 4)
        + u64(4),  # the driver does not fill a counter: as netdevsim of Linux 6.12 replies
    ],
)
def test_fec_of_the_whole_port(counters) -> None:
    found = {"corrected_blocks": 123, "uncorrectable_blocks": 4}
    assert ask({29: encode_attribute(5, counters)}).fec("eth0") == found


def bin_of_histogram(low: int, high: int, value: bytes, *lanes: int) -> bytes:
    """A nest as Linux 6.18 writes it; values are 32 or 64 bits wide, lanes follow a padding."""
    inside = encode_u32(2, low) + encode_u32(3, high) + encode_attribute(4, value)
    if lanes:
        inside += encode_attribute(1, b"") + u64(5, *lanes)
    return encode_attribute(5 | 0x8000, inside)


def test_the_fec_histogram_is_read_bin_by_bin_and_lane_by_lane() -> None:
    # As netdevsim of Linux 7.3 replies.
    histogram = (
        bin_of_histogram(0, 0, struct.pack("=I", 445), 125, 120, 100, 100)
        + bin_of_histogram(1, 3, struct.pack("=I", 12))
        + bin_of_histogram(4, 7, struct.pack("=Q", 2**33), 2, 0, 0, 0)
    )
    assert ask({29: encode_attribute(5, u64(2, 123) + u64(3, 4) + u64(4) + histogram)}).fec("eth0") == {
        "corrected_blocks": 123,
        "uncorrectable_blocks": 4,
        "fec_symbols_err_0": 445,
        "fec_symbols_err_0_lane_0": 125,
        "fec_symbols_err_0_lane_1": 120,
        "fec_symbols_err_0_lane_2": 100,
        "fec_symbols_err_0_lane_3": 100,
        "fec_symbols_err_1_to_3": 12,
        "fec_symbols_err_4_to_7": 2**33,
        "fec_symbols_err_4_to_7_lane_0": 2,
        "fec_symbols_err_4_to_7_lane_1": 0,
        "fec_symbols_err_4_to_7_lane_2": 0,
        "fec_symbols_err_4_to_7_lane_3": 0,
    }


@pytest.mark.parametrize("inside", [b"", encode_u32(2, 1), encode_u32(2, 1) + encode_u32(3, 3)])
def test_a_bin_without_bounds_or_value_breaks_the_format(inside) -> None:
    with pytest.raises(Malformed):
        ask({29: encode_attribute(5, encode_attribute(5, inside))}).fec("eth0")


def test_standard_counters_have_their_own_names() -> None:
    group = (
        encode_u32(2, 1)
        + encode_attribute(4, u64(0, 10))
        + encode_attribute(4, u64(4, 2))
        + encode_attribute(4, u64(99, 1))
    )
    control = encode_u32(2, 2) + encode_attribute(4, u64(1, 7))
    sizes = encode_attribute(
        5, encode_u32(7, 64) + encode_u32(8, 127) + u64(9, 3)
    )  # a histogram of packet sizes
    remote = encode_u32(2, 3) + sizes + encode_attribute(4, u64(1, 6)) + encode_attribute(4, u64(3, 8))
    unknown = encode_u32(2, 77) + encode_attribute(4, u64(0, 5))
    answer = b"".join(encode_attribute(4, part) for part in (group, control, remote, unknown))
    assert ask({32: answer}).standard("eth0") == {
        "eth-mac-FramesTransmittedOK": 10,
        "eth-mac-FrameCheckSequenceErrors": 2,
        "eth-ctrl-MACControlFramesReceived": 7,
        "rmon-etherStatsOversizePkts": 6,
        "rmon-etherStatsJabbers": 8,
    }


@pytest.mark.parametrize("question", ["pause", "link", "fec", "standard"])
def test_an_unsupported_query_is_absent_and_a_missing_device_is_an_error(question) -> None:
    with pytest.raises(Absent):
        getattr(ask({}), question)("eth0")
    with pytest.raises(OSError, match="No such device") as caught:
        getattr(ask(dict.fromkeys((4, 6, 21, 29, 32), errno.ENODEV)), question)("eth0")
    assert not isinstance(caught.value, Absent)


@pytest.mark.parametrize("question", ["fec", "standard"])
def test_an_answer_without_any_counter_is_absent(question) -> None:
    with pytest.raises(Absent):
        getattr(ask({29: encode_u32(4, 1), 32: b""}), question)("eth0")


def test_a_page_that_is_cut_short_is_malformed() -> None:
    with pytest.raises(Malformed):
        ask({31: u64(7, 1)}).module_page("eth0", PageAddress())


def test_a_page_is_requested_with_the_kernels_attribute_numbers() -> None:
    reader, kernel = ethtool({31: encode_attribute(7, bytes(range(128)))})
    place = PageAddress(page=0x11, offset=128, length=128, i2c=0x50, bank=1)
    assert reader.module_page("eth0", place) == bytes(range(128))
    # OFFSET 2 and LENGTH 3 are 32 bits wide, PAGE 4, BANK 5 and I2C_ADDRESS 6 are 8.
    assert kernel.asked[-1].payload.endswith(
        bytes.fromhex("0800020080000000 0800030080000000 0500040011000000 0500050001000000 0500060050000000")
    )


def test_without_permission_there_is_no_transceiver_and_no_failure() -> None:
    with pytest.raises(Absent, match="CAP_NET_ADMIN"):
        ask({31: errno.EPERM}).module_page("eth0", PageAddress())
