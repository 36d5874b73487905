"""Sends the frames of a capture in a loop, at a rate: `python wire_sender.py DEVICE FILE PACKETS_PER_SECOND SECONDS`.

By sendmmsg(2) on a packet socket past the queueing discipline, a burst per call. Prints how many frames the kernel took. The
fallback of a benchmark of receivers: pktgen is a kernel module, and tcpreplay a package.
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import time
from pathlib import Path

from dpkt.pcap import Reader

SOL_PACKET, QDISC_BYPASS = 263, 20
BURST = 64


class Part(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class Message(ctypes.Structure):
    """struct mmsghdr, without address and control data."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("parts", ctypes.POINTER(Part)),
        ("count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
        ("sent", ctypes.c_uint32),
    )


def main(device: str, file: str, rate: float, seconds: float) -> None:
    """Send, and print the number of frames."""
    with Path(file).open("rb") as opened:
        frames = [frame for _, frame in Reader(opened)]
    frames = frames[: len(frames) // BURST * BURST]
    kept = [ctypes.create_string_buffer(frame, len(frame)) for frame in frames]
    parts = (Part * len(frames))(*((ctypes.addressof(one), len(one)) for one in kept))
    messages = (Message * len(frames))()
    for at, message in enumerate(messages):
        message.parts, message.count = ctypes.pointer(parts[at]), 1
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.setsockopt(SOL_PACKET, QDISC_BYPASS, 1)
        sender.bind((device, 0))
        print(send(sender, messages, rate, seconds))


def send(sender: socket.socket, messages: ctypes.Array[Message], rate: float, seconds: float) -> int:
    """Send bursts when they are due; the number of frames."""
    sendmmsg = ctypes.CDLL(None, use_errno=True).sendmmsg
    begin = time.monotonic()
    sent = at = 0
    while (passed := time.monotonic() - begin) < seconds:
        if sent > rate * passed:
            time.sleep(BURST / rate / 2)
            continue
        count = sendmmsg(sender.fileno(), ctypes.byref(messages[at]), BURST, 0)
        if count < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        sent += count
        at = (at + BURST) % len(messages)
    return sent


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
