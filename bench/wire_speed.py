"""How many packets per second and core does `wire` count, compared with `tshark -T fields` and a loop over scapy?

The same captures for all: RoCE v2 over IPv4 between 64 hosts, with marks, CNPs and go-back-N, in memory. CPU time of the
process, children included, best of several runs in turn. tshark prints the fields that pairs are counted by, and verifies
no CRC; scapy dissects each packet; `wire` counts everything and verifies each CRC. The limit is a loop that reads the
file and computes one CRC over each piece, in the same run. Memory: 10 GB through a pipe. Live: `wire_live.py`.
Needs tshark (Debian's package) and scapy (extra test).
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tables import MEMORY, print_head, print_row
from wire_captures import write_capture

if TYPE_CHECKING:
    from collections.abc import Sequence

PAYLOADS = (0, 64, 1024, 4096)
PACKETS = 400_000
SCAPY_PACKETS = 4_000
TSHARK_PACKETS = 40_000
ROUNDS = 3
GIGABYTE = 1 << 30
WRITES_PACKETS = 5_000
"""Packets of the capture that is repeated for the measurement of memory."""

TSHARK = (
    "tshark", "-n", "-T", "fields", "-e", "frame.time_epoch", "-e", "ip.src", "-e", "ip.dst", "-e", "ip.dsfield", "-e",
    "infiniband.bth.opcode", "-e", "infiniband.bth.destqp", "-e", "infiniband.bth.psn", "-e", "infiniband.aeth.syndrome", "-r",
)  # fmt: skip
SCAPY = """
import sys
from collections import Counter
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP
from scapy.utils import PcapReader
counts = Counter()
for packet in PcapReader(sys.argv[1]):
    if BTH in packet:
        counts[packet[IP].src, packet[IP].dst, packet[BTH].opcode] += 1
"""


LIMIT = """
import sys
try:
    from isal.isal_zlib import crc32
except ImportError:
    from zlib import crc32
room = memoryview(bytearray(1 << 20))
with open(sys.argv[1], "rb", buffering=0) as file:
    while count := file.readinto(room):
        crc32(room[:count])
"""
"""What no program that verifies CRCs can be faster than: each byte is read, in the best piece, and is part of one CRC."""


def cpu_seconds(command: Sequence[str]) -> float:
    """CPU seconds of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - our own commands
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the tables."""
    print(
        f"\n### packets per second of CPU time; load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n"
    )
    print_head(
        "payload",
        "wire packets/s",
        "limit packets/s",
        "tshark packets/s",
        "scapy packets/s",
        "wire to limit",
        "wire to tshark",
        "wire to scapy",
    )
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        for payload in PAYLOADS:
            print_row(payload, *_speeds(Path(folder), payload))
        _memory(Path(folder))


def _speeds(folder: Path, payload: int) -> list[object]:
    files = {}
    for packets in (PACKETS, TSHARK_PACKETS, SCAPY_PACKETS, 1):
        files[packets] = str(folder / f"{packets}.pcap")
        write_capture(Path(files[packets]), packets, payload=payload)
    ours = (sys.executable, "-m", "roce_exporter", "wire", "--format=json")
    scapy = (sys.executable, "-c", SCAPY)
    limit = (sys.executable, "-c", LIMIT)
    found = [_speed(ours, files, PACKETS), _speed(limit, files, PACKETS)]
    found.append(_speed(TSHARK, files, TSHARK_PACKETS) if shutil.which("tshark") else float("nan"))
    found.append(_speed(scapy, files, SCAPY_PACKETS))
    return [*(round(one) for one in found if one == one), *(round(found[0] / one, 2) for one in found[1:])]  # noqa: PLR0124 - not a number


def _speed(command: Sequence[str], files: dict[int, str], packets: int) -> float:
    """Packets per CPU second without the start, which a capture of one packet measures."""
    start = min(cpu_seconds((*command, files[1])) for _ in range(ROUNDS))
    return packets / (min(cpu_seconds((*command, files[packets])) for _ in range(ROUNDS)) - start)


def _memory(folder: Path) -> None:
    """The largest resident size while 10 GB pass through a pipe, and after a tenth of them."""
    print("\n### memory\n")
    print_head("GB through a pipe", "largest RSS MB")
    place = folder / "repeated.pcap"
    write_capture(place, WRITES_PACKETS, payload=4096)
    content = place.read_bytes()
    for gigabytes in (1, 10):
        print_row(gigabytes, _resident(content, gigabytes))


def _resident(content: bytes, gigabytes: int) -> float:
    command = (sys.executable, "-m", "roce_exporter", "wire", "-", "--format=json")
    again = content[24:]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:  # noqa: S603 - the same
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        written = process.stdin.write(content)
        while written < gigabytes * GIGABYTE:
            written += process.stdin.write(again)
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.stdin.close()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    main()
