"""ethtool over generic netlink: attributes missing in a reply have no value, and no reply breaks the decoders."""

from __future__ import annotations

import contextlib
import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roce_exporter.kernel import Absent
from roce_exporter.kernel.ethtool_netlink import EthtoolNetlink, decode_groups, decode_modes
from roce_exporter.kernel.netlink import Malformed, encode_attribute, encode_u32
from roce_exporter.kernel.transceiver import PageAddress

FAMILY = 0x15


def u8(kind: int, value: int) -> bytes:
    return encode_attribute(kind, bytes([value]))


def u64(kind: int, *values: int) -> bytes:
    return encode_attribute(kind, struct.pack(f"={len(values)}Q", *values))


class FakeKernel:
    """A generic netlink socket whose ethtool family returns the test's replies, by command."""

    def __init__(self, answers: dict[int, bytes | int]) -> None:
        self.answers = answers
        self.inbox: list[bytes] = []
        self.requests: list[bytes] = []

    def send(self, data: bytes, /) -> int:
        _, kind, _, sequence, _ = struct.unpack_from("=IHHII", data)
        command = data[16]
        self.requests.append(data)
        answer = (
            encode_attribute(1, struct.pack("=H", FAMILY))
            if kind == 16
            else self.answers.get(command, errno.EOPNOTSUPP)
        )
        if isinstance(answer, int):
            body = struct.pack("=i", -answer) + data[:16]
            self.inbox.append(struct.pack("=IHHII", 16 + len(body), 2, 0, sequence, 1) + body)
        else:
            body = struct.pack("=BBH", command, 1, 0) + answer
            self.inbox.append(struct.pack("=IHHII", 16 + len(body), kind, 0, sequence, 1) + body)
        return len(data)

    def recvmsg_into(self, buffers, /):
        data = self.inbox.pop(0)
        buffers[0][: len(data)] = data
        return len(data), [], 0, (0, 0)

    def getsockname(self) -> tuple[int, int]:
        return (1, 0)

    def close(self) -> None:
        pass


def ask(answers: dict[int, bytes | int]) -> EthtoolNetlink:
    return EthtoolNetlink(lambda _: FakeKernel(answers))


@pytest.mark.parametrize(
    "family", [None, b"", u8(1, FAMILY), encode_u32(1, 1 << 16), u64(1, FAMILY)], ids=range(5)
)
def test_an_answer_without_a_number_of_the_family_is_malformed(family: bytes | None) -> None:
    """None: the kernel acknowledges the query and sends no reply."""

    class Kernel(FakeKernel):
        def send(self, data: bytes, /) -> int:
            _, kind, _, sequence, _ = struct.unpack_from("=IHHII", data)
            body = bytes(4) if family is None else struct.pack("=BBH", 1, 2, 0) + family
            kind = 2 if family is None else kind
            self.inbox.append(struct.pack("=IHHII", 16 + len(body), kind, 0, sequence, 1) + body)
            return len(data)

    with pytest.raises(Malformed, match="no number of the ethtool family"):
        EthtoolNetlink(lambda _: Kernel({})).pause("eth0")


def test_pause_with_and_without_its_counters() -> None:
    switches = u8(2, 0) + u8(3, 1) + u8(4, 1)
    assert ask({21: switches}).pause("eth0") == {"autonegotiate": 0, "receive": 1, "transmit": 1}
    counted = switches + encode_attribute(5, u64(2, 2) + u64(3, 1) + u64(4, 9))
    assert ask({21: counted}).pause("eth0") == {
        "autonegotiate": 0,
        "receive": 1,
        "transmit": 1,
        "transmit_frames": 2,
        "receive_frames": 1,
        "transmit_storm_events": 9,
    }


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


def test_unknown_attributes_of_a_link_are_left_out() -> None:
    assert decode_modes(encode_u32(5, 0xFFFFFFFF) + u8(6, 255) + encode_u32(9, 0)) == {}


def test_the_first_of_an_array_of_lanes_is_the_whole_port() -> None:
    assert ask({29: encode_attribute(5, u64(2, 123, 100, 23) + u64(3, 4))}).fec("eth0") == {
        "corrected_blocks": 123,
        "uncorrectable_blocks": 4,
    }


def test_an_empty_array_is_a_counter_that_the_driver_does_not_fill() -> None:
    # As netdevsim of Linux 6.12 replies.
    assert ask({29: encode_attribute(5, u64(2, 123) + u64(3, 4) + u64(4))}).fec("eth0") == {
        "corrected_blocks": 123,
        "uncorrectable_blocks": 4,
    }


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
def test_a_bin_without_bounds_or_value_breaks_the_format(inside: bytes) -> None:
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
def test_an_unsupported_query_is_absent_and_a_missing_device_is_an_error(question: str) -> None:
    with pytest.raises(Absent):
        getattr(ask({}), question)("eth0")
    with pytest.raises(OSError, match="No such device") as caught:
        getattr(ask(dict.fromkeys((4, 6, 21, 29, 32), errno.ENODEV)), question)("eth0")
    assert not isinstance(caught.value, Absent)


@pytest.mark.parametrize("question", ["fec", "standard"])
def test_an_answer_without_any_counter_is_absent(question: str) -> None:
    with pytest.raises(Absent):
        getattr(ask({29: encode_u32(4, 1), 32: b""}), question)("eth0")


@given(st.binary(max_size=200), st.sampled_from(["pause", "link", "fec", "standard"]))
def test_no_bytes_are_more_than_malformed(answer: bytes, question: str) -> None:
    with contextlib.suppress(Absent, Malformed):
        found = getattr(ask(dict.fromkeys((4, 6, 21, 29, 32), answer)), question)("eth0")
        assert all(isinstance(value, int) for value in found.values())


@given(st.binary(max_size=200))
def test_no_bytes_break_the_group_decoder(answer: bytes) -> None:
    with contextlib.suppress(Malformed):
        decode_groups(answer)


def test_a_page_that_is_cut_short_is_malformed() -> None:
    with pytest.raises(Malformed):
        ask({31: u64(7, 1)}).module_page("eth0", PageAddress())


def test_a_page_is_requested_with_the_kernels_attribute_numbers() -> None:
    wire = FakeKernel({31: encode_attribute(7, bytes(range(128)))})
    place = PageAddress(page=0x11, offset=128, length=128, i2c=0x50, bank=1)
    assert EthtoolNetlink(lambda _: wire).module_page("eth0", place) == bytes(range(128))
    # OFFSET 2 and LENGTH 3 are 32 bits wide, PAGE 4, BANK 5 and I2C_ADDRESS 6 are 8.
    assert wire.requests[-1].endswith(
        bytes.fromhex("0800020080000000 0800030080000000 0500040011000000 0500050001000000 0500060050000000")
    )


def test_without_permission_there_is_no_transceiver_and_no_failure() -> None:
    with pytest.raises(Absent, match="CAP_NET_ADMIN"):
        ask({31: errno.EPERM}).module_page("eth0", PageAddress())
