"""The kernel's filter accepts what the decoders read and little else; run by an interpreter of classic BPF, and by the kernel."""

import os
import socket
import struct

import pytest
from wire_frames import bth, ethernet, ipv4, ipv6, roce, udp

from roce_exporter.wire.decode.columns import decode_frames
from roce_exporter.wire.decode.locate import IP_TUNNELS, UDP_TUNNELS
from roce_exporter.wire.frames import InputError
from roce_exporter.wire.inputs.packet_socket import PacketSocket, socket_filter

ROCE = roce(bth(0x0A), bytes(16))


def accepts(frame: bytes) -> bool:
    """What the kernel's interpreter does: net/core/filter.c."""
    program, at, value, index = socket_filter(), 0, 0, 0
    while True:
        code, yes, no, operand = program[at]
        at += 1
        size = 2 if code in (0x28, 0x48) else 1
        place = operand + (index if code == 0x48 else 0)
        if code in (0x28, 0x30, 0x48, 0xB1) and place + size > len(frame):
            return False
        if code in (0x28, 0x30, 0x48):
            value = int.from_bytes(frame[place : place + size])
        elif code == 0xB1:
            index = 4 * (frame[place] & 0xF)
        elif code == 0x15:
            at += yes if value == operand else no
        else:
            assert code == 0x06
            return operand > 0


ACCEPTED = {
    "v2": ROCE,
    "v2 with options": roce(bth(0x0A), bytes(16), options=bytes(8)),
    "v6": ethernet(0x86DD, ipv6(1, 2, udp(bytes(20)))),
    "one tag": roce(bth(0x0A), bytes(16), tags=[5]),
    "two tags": roce(bth(0x0A), bytes(16), tags=[5, 6]),
    "v1": ethernet(0x8915, bytes(60)),
    "mac control": ethernet(0x8808, bytes(46)),
    "lldp": ethernet(0x88CC, bytes(46)),
    "gre over v6": ethernet(0x86DD, ipv6(1, 2, bytes(30), protocol=47)),
    **{
        f"udp {port}": ethernet(0x0800, ipv4("1.1.1.1", "2.2.2.2", udp(bytes(30), port)))
        for port in (*UDP_TUNNELS, 6343)
    },
    **{
        f"protocol {protocol}": ethernet(0x0800, ipv4("1.1.1.1", "2.2.2.2", bytes(30), protocol=protocol))
        for protocol in IP_TUNNELS
    },
    "mpls": ethernet(0x8847, bytes(60)),
    "v6 with an extension": ethernet(0x86DD, ipv6(1, 2, bytes(40), protocol=60)),
}
REJECTED = {
    "dns": ethernet(0x0800, ipv4("1.1.1.1", "2.2.2.2", udp(bytes(30), 53))),
    "tcp": ethernet(0x0800, ipv4("1.1.1.1", "2.2.2.2", udp(bytes(30)), protocol=6)),
    "arp": ethernet(0x0806, bytes(46)),
    "tagged arp": ethernet(0x0806, bytes(46), [5]),
    "three tags": roce(bth(0x0A), bytes(16), tags=[5, 6, 7]),
    "v6 tcp": ethernet(0x86DD, ipv6(1, 2, udp(bytes(20)), protocol=6)),
    "short": ROCE[:30],
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name) -> None:
    assert accepts(ACCEPTED[name])


@pytest.mark.parametrize("name", REJECTED)
def test_rejected(name) -> None:
    assert not accepts(REJECTED[name])


def can_capture() -> bool:
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    except OSError:
        return False
    return os.path.exists("/sys/class/net/lo")


capturing = pytest.mark.skipif(not can_capture(), reason="needs CAP_NET_RAW")


@capturing
def test_the_kernel_passes_roce_and_nothing_else_through_the_ring() -> None:
    """Through the real ring of the loopback device, more blocks than it has."""
    opened = PacketSocket("lo", blocks=4, block_bytes=1 << 16)
    payload = ROCE[14 + 28 :]
    try:
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
        ):
            receiver.bind(("127.0.0.1", 0))
            found = 0
            for _ in range(10):
                for _ in range(7):
                    sender.sendto(payload, ("127.0.0.1", 4791))
                    sender.sendto(payload, receiver.getsockname())
                expected = found + 7
                while found < expected:
                    frames = opened.read(10)
                    assert frames is not None
                    columns = decode_frames(frames).columns
                    found += int((columns.opcodes == 0x0A).sum())
                    assert set(columns.lengths.tolist()) <= {len(ROCE)}
            assert found == 70
            received, dropped = opened.drops()
            assert (received, dropped) == (70, 0)
    finally:
        opened.close()


@capturing
def test_a_full_ring_counts_what_it_drops() -> None:
    opened = PacketSocket("lo", blocks=2, block_bytes=1 << 12)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(400):
                sender.sendto(ROCE[42:], ("127.0.0.1", 4791))
        received, dropped = opened.drops()
        assert received == 400
        assert 0 < dropped < 400
    finally:
        opened.close()


@capturing
def test_at_the_end_the_ring_is_read_to_its_last_frame() -> None:
    """`left` also counts the frames of a block that the kernel still fills, for which `read` has nothing yet."""
    opened = PacketSocket("lo")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(3):
                sender.sendto(ROCE[42:], ("127.0.0.1", 4791))
            opened.end()
            assert opened.left() == 3
            for _ in range(3):
                sender.sendto(ROCE[42:], ("127.0.0.1", 4791))
        found = 0
        while opened.left():
            frames = opened.read(10)
            assert frames is not None
            found += len(frames.starts)
        assert found == 3
        assert opened.drops() == (3, 0)
    finally:
        opened.close()


@capturing
def test_a_device_that_does_not_exist() -> None:
    with pytest.raises(InputError, match="nope: no such network device; `ip link` lists them"):
        PacketSocket("nope")


def test_the_filter_is_the_struct_that_the_kernel_reads() -> None:
    assert struct.calcsize("=HBBI") == 8
