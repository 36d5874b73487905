"""What `roce-exporter wire` counts on a wire is what the kernel counts: Soft-RoCE's own counters and the qdisc's marks.

The capture is at the receiver, veth1, behind everything that degrades the wire. Live and from a file of tcpdump, which must
agree. Traffic flows before the wire gets bad, so that the first PSN of a flow is known.
"""

from __future__ import annotations

import json
import signal
import socket
import struct
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import traffic
from daemon import wait_until
from nic import ask_json, run

from roce_exporter.wire.decode.invariant_crc import invariant_crc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COMMAND = str(Path(sys.executable).with_name("roce-exporter"))
SENDER, RECEIVER = traffic.ADDRESSES
CAPTURED_ON = traffic.NETDEVS[1]
TCLASS = 26 << 2 | 2
"""DSCP 26, ECT(0)."""
MEASURED = ("round_trips",)
"""What depends on time stamps, which the two captures take one after the other."""


@pytest.fixture(scope="module", autouse=True)
def _wire() -> Iterator[None]:
    traffic.bring_up()
    yield
    traffic.take_down()


def sockets() -> int:
    """Packet sockets that receive every protocol."""
    return sum(line.split()[3] == "0003" for line in Path("/proc/net/packet").read_text().splitlines()[1:])


class Capture:
    """A live capture and one of tcpdump, at the same place."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "wire.pcap"
        before = sockets()
        self._dump = subprocess.Popen(
            ("tcpdump", "-i", CAPTURED_ON, "-s", "0", "-B", "65536", "-w", str(self._file), "udp port 4791"),
            stderr=subprocess.DEVNULL,
        )
        self._live = subprocess.Popen(
            (COMMAND, "wire", f"--interface={CAPTURED_ON}", "--format=json"),
            stdout=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: sockets() == before + 2)

    def stop(self) -> dict[str, Any]:
        """The document of the live capture; that of the file has the same counts."""
        self._live.send_signal(signal.SIGTERM)
        text, _ = self._live.communicate(timeout=60)
        self._dump.send_signal(signal.SIGTERM)
        self._dump.wait(timeout=60)
        live: dict[str, Any] = json.loads(text)
        found = subprocess.run(
            (COMMAND, "wire", str(self._file), "--format=json"), stdout=subprocess.PIPE, text=True, check=True
        )
        assert live["dropped"] == 0
        assert comparable(live) == comparable(json.loads(found.stdout))
        return live


def comparable(document: dict[str, Any]) -> list[dict[str, Any]]:
    pairs = [{key: value for key, value in pair.items() if key not in MEASURED} for pair in document["pairs"]]
    return sorted(pairs, key=lambda pair: (pair["source"], pair["destination"]))


def pair(document: dict[str, Any], source: str, destination: str) -> dict[str, Any]:
    (found,) = [
        one for one in document["pairs"] if (one["source"], one["destination"]) == (source, destination)
    ]
    return found


@contextmanager
def spoilt_while_flowing(test: str, *how: str, until: Callable[[], bool]) -> Iterator[None]:
    """Traffic on a good wire, on a bad one until something has happened, and on a good one again."""
    with traffic.flowing(test, "-s", "4096", "-D", "60"):
        device = traffic.NETDEVS[0]
        run("tc", "qdisc", "change", "dev", device, "root", "netem", *how)
        wait_until(until)
        run("tc", "qdisc", "change", "dev", device, "root", "netem", "limit", "1000")
        sent = traffic.printed("rxe0")["sent_pkts"]
        wait_until(lambda: traffic.printed("rxe0")["sent_pkts"] > sent + traffic.UNDER_WAY)
        yield


@pytest.mark.parametrize(
    ("how", "counter", "tolerance"),
    [
        (("loss", "2%"), "out_of_seq_request", 0),
        (("duplicate", "5%"), "duplicate_request", 0),
        (("delay", "1ms", "reorder", "75%", "50%"), "out_of_seq_request", 0),
        # A flipped bit in a checksum that the ICRC leaves out makes the kernel drop a packet that is correct for us.
        (("corrupt", "2%"), "out_of_seq_request", 2),
    ],
    ids=["loss", "duplication", "reordering", "corruption"],
)
def test_sequences_are_those_of_the_receiver(
    tmp_path: Path, how: tuple[str, ...], counter: str, tolerance: int
) -> None:
    before = traffic.printed("rxe1")
    capture = Capture(tmp_path)

    def enough() -> bool:
        return traffic.printed("rxe1")[counter] > before[counter] + 20

    with spoilt_while_flowing("ib_write_bw", *how, until=enough):
        pass
    after = traffic.printed("rxe1")
    document = capture.stop()
    there, back = pair(document, SENDER, RECEIVER), pair(document, RECEIVER, SENDER)
    grown = {name: after[name] - before[name] for name in ("duplicate_request", "out_of_seq_request")}
    assert abs(there["duplicate_requests"] - grown["duplicate_request"]) <= tolerance
    assert abs(there["out_of_sequence"] - grown["out_of_seq_request"]) <= tolerance
    assert abs(back["naks"].get("psn_sequence_error", 0) - grown["out_of_seq_request"]) <= tolerance
    assert (there["bad_icrc"] > 0) == (how[0] == "corrupt")
    assert there["retransmissions"] >= there["duplicate_requests"]


def test_marks_are_those_of_red(tmp_path: Path) -> None:
    capture = Capture(tmp_path)
    device = traffic.NETDEVS[0]
    run(
        "tc",
        "qdisc",
        "add",
        "dev",
        device,
        "root",
        "handle",
        "1:",
        "tbf",
        "rate",
        "40mbit",
        "burst",
        "32kb",
        "limit",
        "4mb",
    )
    red = (
        "limit",
        "4000000",
        "min",
        "20000",
        "max",
        "60000",
        "avpkt",
        "4200",
        "burst",
        "10",
        "probability",
        "0.3",
        "ecn",
    )
    run("tc", "qdisc", "add", "dev", device, "parent", "1:1", "handle", "10:", "red", *red)
    try:
        assert traffic.exchange("ib_write_bw", "-n", "400", "-s", "4096", "--tclass", str(TCLASS)) == 0
        (marked,) = [
            one["marked"]
            for one in ask_json("tc", "-s", "-j", "qdisc", "show", "dev", device)
            if one["kind"] == "red"
        ]
    finally:
        run("tc", "qdisc", "del", "dev", device, "root")
    there = pair(capture.stop(), SENDER, RECEIVER)
    assert marked > 0
    assert there["ce"] == marked
    assert there["ce"] + there["ect0"] == there["packets"] == there["dscp"]["26"]


def test_injected_cnps_are_counted_per_peer(tmp_path: Path) -> None:
    """Soft-RoCE never sends a CNP, so they are injected: from three hosts, 1, 2 and 3 times 40."""
    capture = Capture(tmp_path)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((traffic.NETDEVS[0], 0))
        for host in (1, 2, 3):
            for _ in range(40 * host):
                sender.send(cnp(f"10.77.1.{host}", RECEIVER))
    document = capture.stop()
    found = {host: pair(document, f"10.77.1.{host}", RECEIVER) for host in (1, 2, 3)}
    assert {host: one["cnps"] for host, one in found.items()} == {1: 40, 2: 80, 3: 120}
    assert all(one["bad_icrc"] == 0 for one in found.values())
    assert document["sentences"][0].startswith(f"{RECEIVER} congests 10.77.1.3: 120 CNPs")


def cnp(source: str, destination: str) -> bytes:
    """A CNP for queue pair 210, as in the note on its format."""
    base = bytes.fromhex("8100ffff400000d200000000") + bytes(16)
    network = struct.pack(">BBHHHBBH", 0x45, 48 << 2, 20 + 8 + 32, 0, 0x4000, 64, 17, 0)
    network += socket.inet_aton(source) + socket.inet_aton(destination)
    behind = struct.pack(">HHHH", 49152, 4791, 8 + 32, 0) + base
    crc = struct.pack("<I", invariant_crc(network, behind, version=2))
    return b"\xff" * 6 + b"\x02\0\0\0\0\x07\x08\x00" + network + behind + crc
