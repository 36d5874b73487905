"""How many packets per second do `wire --interface`, `tcpdump -w` and `tshark -i` read from a device without drops?

A veth pair in a network namespace of its own: one process sends a capture in a loop at a rate, the other reads. The rates grow until
more than one packet in ten thousand is missing, twice in a row. Sender and reader share the cores of this machine with all else that
runs on it, so these are lower bounds. Packets per second of the reader's CPU time do not depend on other load. tcpdump writes to /dev/null and decodes nothing; tshark prints the fields of `wire_speed.py`.
Needs root, iproute2, and tcpdump and tshark for their columns.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tables import MEMORY, print_head, print_row
from wire_captures import write_capture
from wire_speed import TSHARK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

NAMESPACE = f"roce-bench-{os.getpid()}"
NEAR, FAR = "bench0", "bench1"
PAYLOADS = (64, 1024, 4096)
PACKETS = 6_400
SECONDS = 4.0
SETTLE = 2.0
"""Seconds for a reader to read what is left."""
RATES = (20_000, 50_000, 100_000, 150_000, 200_000, 300_000, 400_000, 600_000)
LOST = 1e-4
UNLIMITED = 1e9


class Reader(NamedTuple):
    """A program that reads a device until SIGINT."""

    name: str
    command: Sequence[str]
    seen: Callable[[str, str], int]
    """The packets that it read, from its output and its messages."""


def readers() -> Iterator[Reader]:
    """Those that are installed."""
    yield Reader(
        "wire",
        (sys.executable, "-m", "roce_exporter", "wire", f"--wire.interface={FAR}", "--format=json"),
        lambda output, _: int(json.loads(output)["packets"]),
    )
    if found := shutil.which("tcpdump"):
        command = (found, "-i", FAR, "-n", "-B", "65536", "-w", "/dev/null", "udp")  # the same 64 MB
        yield Reader("tcpdump -w", command, lambda _, messages: _number(r"(\d+) packets? captured", messages))
    if found := shutil.which("tshark"):
        command = (found, "-i", FAR, "-B", "64", "-f", "udp", *TSHARK[1:-1])
        yield Reader("tshark -i", command, lambda output, _: output.count("\n"))


def main() -> None:
    """Print the table."""
    if os.geteuid() != 0 or not shutil.which("ip"):
        print("needs root and iproute2")
        return
    print(
        f"\n### live: packets per second without drops; load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n"
    )
    listed = list(readers())
    print_head(
        "payload", "reader", "sender alone, packets/s", "without drops, packets/s", "packets per CPU second"
    )
    ip("netns", "add", NAMESPACE)
    try:
        ip("-n", NAMESPACE, "link", "add", "name", NEAR, "type", "veth", "peer", "name", FAR)
        for device in (NEAR, FAR):
            ip("-n", NAMESPACE, "link", "set", device, "mtu", "9000", "up")
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            for payload in PAYLOADS:
                file = f"{folder}/{payload}.pcap"
                write_capture(Path(file), PACKETS, payload=payload)
                alone = round(send(file, UNLIMITED) / SECONDS)
                for one in listed:
                    print_row(payload, one.name, alone, fastest(one, file), processor(one, file))
    finally:
        ip("netns", "del", NAMESPACE)


def ip(*words: str) -> None:
    """Run `ip`."""
    subprocess.run(("ip", *words), check=True)  # noqa: S603, S607 - our own words


def inside(command: Sequence[str]) -> list[str]:
    """The command in the namespace."""
    return ["ip", "netns", "exec", NAMESPACE, *command]


def send(file: str, rate: float) -> int:
    """Send at a rate; the number of frames."""
    sender = str(Path(__file__).parent / "wire_sender.py")
    command = inside((sys.executable, sender, NEAR, file, str(rate), str(SECONDS)))
    return int(subprocess.run(command, check=True, capture_output=True).stdout)  # noqa: S603 - our own program


def fastest(reader: Reader, file: str) -> int:
    """The highest rate that a reader reads completely; 0 for not even the lowest."""
    found = 0
    for rate in RATES:
        reached = 0
        for _ in range(2):
            run = read(reader, file, rate)
            if run.seen >= run.sent * (1 - LOST):
                reached = round(run.sent / SECONDS)
                break
        if not reached:
            break
        found = max(found, reached)
        if reached < 0.9 * rate:  # the sender is slower
            break
    return found


class Run(NamedTuple):
    """What one reader did."""

    sent: int
    seen: int
    cpu: float
    """Seconds of CPU time, with its start."""


def read(reader: Reader, file: str, rate: float) -> Run:
    """Let a reader read what is sent at a rate; at rate 0 nothing."""
    with (
        tempfile.TemporaryFile("w+", dir=MEMORY) as output,
        tempfile.TemporaryFile("w+", dir=MEMORY) as messages,
    ):
        with subprocess.Popen(inside(reader.command), stdout=output, stderr=messages) as process:  # noqa: S603 - listed above
            wait_for_socket(process.pid)
            count = send(file, rate) if rate else 0
            time.sleep(SETTLE)
            before = cpu_seconds()
            process.send_signal(signal.SIGINT)
        output.seek(0)
        messages.seek(0)
        return Run(count, reader.seen(output.read(), messages.read()), cpu_seconds() - before)


def cpu_seconds() -> float:
    """Of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def processor(reader: Reader, file: str) -> int:
    """Packets read per second of CPU time, without the start of the program."""
    run, idle = read(reader, file, UNLIMITED), read(reader, file, 0)
    return round(run.seen / max(run.cpu - idle.cpu, 1e-9))


def wait_for_socket(process: int) -> None:
    """Until a packet socket is open in the namespace of a process, and half a second more."""
    table = Path(f"/proc/{process}/net/packet")
    own = Path("/proc/self/net/packet").read_text()
    while (now := table.read_text()) == own or now.count("\n") < 2:  # noqa: PLR2004 - a heading and a socket
        time.sleep(0.1)
    time.sleep(0.5)


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


if __name__ == "__main__":
    main()
