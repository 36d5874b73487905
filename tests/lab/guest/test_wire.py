"""What `roce-exporter wire` counts on a wire is what the kernel counts: Soft-RoCE's own counters and the qdisc's marks.

The capture is on veth1, the receiver's end: live through the packet ring, and from a file that tcpdump writes at the same time.
Both must count the same, except frames that are no RoCE: the kernel keeps most of them from the live capture.
"""

import json
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import traffic
from daemon import wait_until
from nic import ask_json, run

from roce_exporter.wire.decode.invariant_crc import invariant_crc

COMMAND = str(Path(sys.executable).with_name("roce-exporter"))
SENDER, RECEIVER = traffic.ADDRESSES
CAPTURED_ON = traffic.NETDEVS[1]
TCLASS = 26 << 2 | 2
"""DSCP 26, ECT(0)."""
LAST = "10.77.9.9"
"""Sends the frame that ends a capture."""
MESSAGES = 2500
"""Writes of one packet each."""
READS = 1500
SENT = Path("/sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts")
"""What `rdma statistic` prints too, without starting a process while the packets flow."""
OF_ALL_FRAMES = ("packets", "other_frames", "from", "to", "sentences")
"""Keys of the document that frames without RoCE are in: also sentences say how long the capture was."""
EVENTS = 5
"""At least that many happen on a bad wire; tens are expected."""
ATTEMPTS = 3


@pytest.fixture(scope="module", autouse=True)
def _wire() -> Iterator[None]:
    traffic.bring_up()
    yield
    traffic.take_down()


def captures(process: subprocess.Popen[str]) -> bool:
    """Whether a process has a packet socket that receives."""
    assert process.poll() is None
    held = set()
    for link in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            held.add(str(link.readlink()))
    rows = [line.split() for line in Path("/proc/net/packet").read_text().splitlines()[1:]]
    return any(f"socket:[{inode}]" in held and kind == "0003" for _, _, _, kind, *_, inode in rows)


class Capture:
    """A live capture and one of tcpdump, at the same place."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "wire.pcap"
        # A buffer for all packets, each written to the file at once, with the resolution of the live capture.
        flags = ("-s", "0", "-B", "65536", "-U", "--time-stamp-precision=nano", "-w", str(self._file))
        self._dump = subprocess.Popen(
            ("tcpdump", "-i", CAPTURED_ON, *flags), stderr=subprocess.DEVNULL, text=True
        )
        self._live = subprocess.Popen(
            (COMMAND, "wire", f"--wire.interface={CAPTURED_ON}", "--format=json"),
            stdout=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: captures(self._dump) and captures(self._live))

    def stop(self) -> dict[str, Any]:
        """The document of the live capture; that of the file is the same.

        Both end with one more frame. tcpdump discards what it has not read when it is terminated, so it is terminated after
        that frame; the live capture at once, because it has to count what its ring holds.
        """
        frame = cnp(LAST, RECEIVER)
        inject(frame)
        self._live.send_signal(signal.SIGTERM)
        wait_until(lambda: frame in tail(self._file))
        self._dump.send_signal(signal.SIGTERM)
        self._dump.wait(timeout=60)
        text, _ = self._live.communicate(timeout=60)
        assert self._live.returncode == 0
        live: dict[str, Any] = json.loads(text)
        read = (COMMAND, "wire", str(self._file), "--format=json")
        filed = json.loads(subprocess.run(read, stdout=subprocess.PIPE, text=True, check=True).stdout)
        self._file.unlink()
        assert pair(live, LAST, RECEIVER)["cnps"] == 1
        assert live.pop("dropped") == 0
        assert filed.pop("dropped") is None
        assert of_roce(live) == of_roce(filed)
        return live


def of_roce(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in OF_ALL_FRAMES}


def tail(file: Path) -> bytes:
    with file.open("rb") as opened:
        opened.seek(max(0, file.stat().st_size - 4096))
        return opened.read()


def pair(document: dict[str, Any], source: str, destination: str) -> dict[str, Any]:
    (found,) = [
        one for one in document["pairs"] if (one["source"], one["destination"]) == (source, destination)
    ]
    return found


def inject(*frames: bytes) -> None:
    """Send frames from the sender's end of the wire."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((traffic.NETDEVS[0], 0))
        for frame in frames:
            sender.send(frame)


def exchange_while(
    device: str, *how: str, test: str = "ib_write_bw", messages: int = MESSAGES
) -> dict[str, int]:
    """Exchange all messages; the netem of `device` degrades packets from soon after the start.

    The first packets arrive in order, so that the first PSN of the flow is known. Ends when every message is acknowledged.
    The result is what the counters of both ends and of netem have grown by: names of rxe1's begin with `receiver_`.
    """
    before = counters()
    common = ("timeout", "100", test, "-F", "-x", "1", "-n", str(messages), "-s", "4096")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen((*common, "-d", "rxe1"), **quiet) as server:
        wait_until(traffic.is_listening)
        with subprocess.Popen((*common, "-d", "rxe0", traffic.ADDRESSES[1]), **quiet) as client:
            wait_until(lambda: int(SENT.read_text()) > before["sent_pkts"])
            run("tc", "qdisc", "change", "dev", device, "root", "netem", *how)
            assert client.wait() == 0
        assert server.wait() == 0
    after = counters()
    (netem,) = [
        one for one in ask_json("tc", "-s", "-j", "qdisc", "show", "dev", device) if one["kind"] == "netem"
    ]
    return {name: after[name] - before[name] for name in after} | {"dropped": netem["drops"]}


def counters() -> dict[str, int]:
    """The hardware counters of both ends."""
    return traffic.printed("rxe0") | {
        f"receiver_{name}": one for name, one in traffic.printed("rxe1").items()
    }


@pytest.mark.parametrize(
    ("how", "counter"),
    [
        (("loss", "2%"), "receiver_out_of_seq_request"),
        (("duplicate", "5%"), "receiver_duplicate_request"),
        (("delay", "1ms", "reorder", "75%", "50%"), "receiver_out_of_seq_request"),
    ],
    ids=["loss", "duplication", "reordering"],
)
def test_sequences_are_those_of_the_receiver(tmp_path, how, counter) -> None:
    """Exactly: the capture is behind the qdisc of the sender's end, so it sees what Soft-RoCE at the receiver's end sees."""
    capture = Capture(tmp_path)
    with traffic.spoilt(0):
        grown = exchange_while(traffic.NETDEVS[0], *how)
    document = capture.stop()
    assert grown[counter] >= EVENTS
    assert pair(document, SENDER, RECEIVER)["packets"] == grown["receiver_rcvd_pkts"]
    assert pair(document, SENDER, RECEIVER)["bad_icrc"] == 0
    check_receiver(document, grown)


def check_receiver(document: dict[str, Any], grown: dict[str, int]) -> None:
    """What the wire shows of PSNs and NAKs is what the receiver counted, and every message arrived once."""
    there, back = pair(document, SENDER, RECEIVER), pair(document, RECEIVER, SENDER)
    assert there["duplicate_requests"] == grown["receiver_duplicate_request"]
    assert there["out_of_sequence"] == grown["receiver_out_of_seq_request"]
    assert back["naks"].get("psn_sequence_error", 0) == grown["receiver_out_of_seq_request"]
    new = there["packets"] - there["bad_icrc"] - there["retransmissions"]
    assert new + there["missing"] == MESSAGES


def test_corrupted_packets_are_those_that_the_receiver_drops(tmp_path) -> None:
    """Exactly, where the ICRC covers the corrupted bit.

    It leaves out 12 of 4,170 bytes that the kernel checks in other ways: the destination MAC address, the checksums of IP and
    UDP, and ToS and TTL, which the former covers. Where a length grows, the ICRC is outside the capture. The kernel drops such
    a packet, which is not wrong for us, before it reaches Soft-RoCE. The counter of received packets shows that this happened,
    and the traffic is repeated.
    """
    for _ in range(ATTEMPTS):
        capture = Capture(tmp_path)
        with traffic.spoilt(0):
            grown = exchange_while(traffic.NETDEVS[0], "corrupt", "1%")
        document = capture.stop()
        there = pair(document, SENDER, RECEIVER)
        assert there["bad_icrc"] >= EVENTS
        assert there["packets"] - there["bad_icrc"] >= grown["receiver_rcvd_pkts"]
        if there["packets"] - there["bad_icrc"] == grown["receiver_rcvd_pkts"]:
            break
    assert there["packets"] - there["bad_icrc"] == grown["receiver_rcvd_pkts"]
    check_receiver(document, grown)


@contextmanager
def received_through_netem() -> Iterator[str]:
    """A netem behind the place of the capture: what veth1 receives, and a capture there has seen, passes through ifb0."""
    run("ip", "link", "add", "ifb0", "type", "ifb")
    run("ip", "link", "set", "ifb0", "mtu", "4200", "up")
    run("tc", "qdisc", "add", "dev", "ifb0", "root", "netem")
    run("tc", "qdisc", "add", "dev", CAPTURED_ON, "clsact")
    redirect = ("action", "mirred", "egress", "redirect", "dev", "ifb0")
    run("tc", "filter", "add", "dev", CAPTURED_ON, "ingress", "matchall", *redirect)
    try:
        yield "ifb0"
    finally:
        run("tc", "qdisc", "del", "dev", CAPTURED_ON, "clsact")
        run("ip", "link", "del", "ifb0")


def test_retransmissions_are_those_of_the_sender(tmp_path) -> None:
    """The loss is behind the place of the capture, which sees every packet that Soft-RoCE sends.

    Times that it went back are at most its retries: those that send nothing before the next one cannot be seen, and the last
    one is counted when a new packet follows.
    """
    capture = Capture(tmp_path)
    with received_through_netem() as device:
        grown = exchange_while(device, "loss", "2%")
    document = capture.stop()
    there, back = pair(document, SENDER, RECEIVER), pair(document, RECEIVER, SENDER)
    assert grown["receiver_out_of_seq_request"] >= EVENTS
    assert there["packets"] == grown["sent_pkts"]
    assert there["packets"] - grown["dropped"] == grown["receiver_rcvd_pkts"]
    assert there["retransmissions"] == grown["sent_pkts"] - MESSAGES
    assert there["gaps"] == 0
    assert back["naks"]["psn_sequence_error"] == grown["receiver_out_of_seq_request"]
    assert 0 < there["go_back_n"] + there["selective"] <= grown["completer_retry_err"]


def test_repeated_reads_are_those_of_the_responder(tmp_path) -> None:
    """Responses are lost, so the requester reads again."""
    capture = Capture(tmp_path)
    with traffic.spoilt(1):
        grown = exchange_while(traffic.NETDEVS[1], "loss", "2%", test="ib_read_bw", messages=READS)
    document = capture.stop()
    there = pair(document, SENDER, RECEIVER)
    assert grown["receiver_duplicate_request"] >= EVENTS
    assert there["packets"] == grown["receiver_rcvd_pkts"]
    assert there["duplicate_requests"] == grown["receiver_duplicate_request"]
    assert there["out_of_sequence"] == grown["receiver_out_of_seq_request"] == 0


def test_marks_are_those_of_red(tmp_path) -> None:
    capture = Capture(tmp_path)
    device = traffic.NETDEVS[0]
    add = ("tc", "qdisc", "add", "dev", device)
    run(*add, "root", "handle", "1:", "tbf", "rate", "40mbit", "burst", "32kb", "limit", "4mb")
    sizes = ("limit", "4000000", "min", "20000", "max", "60000", "avpkt", "4200", "burst", "10")
    run(*add, "parent", "1:1", "handle", "10:", "red", *sizes, "probability", "0.3", "ecn")
    try:
        assert traffic.exchange("ib_write_bw", "-n", "400", "-s", "4096", "--tclass", str(TCLASS)) == 0
        shown = ask_json("tc", "-s", "-j", "qdisc", "show", "dev", device)
        (marked,) = [one["marked"] for one in shown if one["kind"] == "red"]
    finally:
        run("tc", "qdisc", "del", "dev", device, "root")
    there = pair(capture.stop(), SENDER, RECEIVER)
    assert marked > 0
    assert there["ce"] == marked
    assert there["ce"] + there["ect0"] == there["packets"] == there["dscp"]["26"]


def test_injected_cnps_are_counted_per_peer(tmp_path) -> None:
    """Soft-RoCE never sends a CNP, so they are injected: from three hosts, 1, 2 and 3 times 40."""
    capture = Capture(tmp_path)
    for host in (1, 2, 3):
        inject(*[cnp(f"10.77.1.{host}", RECEIVER)] * (40 * host))
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
