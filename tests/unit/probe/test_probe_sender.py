"""A sender and a responder over real sockets of the kernel on loopback: what is measured, and what each failure is called."""

import ipaddress
import socket
from collections import Counter
from collections.abc import Iterator

import pytest
from clock import Clock
from waiting import HUNG_SECONDS, wait_until

from roce_exporter.probe.guard import Guard
from roce_exporter.probe.plan import RACK, Probe, ProbeTarget
from roce_exporter.probe.responder import Responder
from roce_exporter.probe.sender import LATE, LOST, Sender, TrafficClass
from roce_exporter.probe.stamp import (
    HARDWARE_ASSIST,
    SOFTWARE_LOCAL,
    FollowUp,
    StampRequest,
    pack_request,
    read_reply,
)
from roce_exporter.probe.udp import Packet, Sent, Times

KEY = b"0123456789abcdef"
ROCE = TrafficClass("roce", 26, is_ecn_capable=True)
FOUR, SIX = "127.0.0.1", "::1"


class Outcomes:
    """What the sender reports, counted by its name."""

    def __init__(self) -> None:
        self.counts: Counter[object] = Counter()
        self.times: list[tuple[float, float]] = []

    def sent(self, probe: Probe, kind: TrafficClass) -> None:
        self.counts["sent"] += 1

    def refused(self) -> None:
        self.counts["refused"] += 1

    def answered(self, probe: Probe, kind: TrafficClass, there: int | None, back: int | None) -> None:
        self.counts["answered"] += 1
        self.counts[there, back] += 1

    def late(self, probe: Probe) -> None:
        self.counts["late"] += 1

    def lost(self, probe: Probe, kind: TrafficClass) -> None:
        self.counts["lost"] += 1

    def measured(self, probe: Probe, network: float, responder: float) -> None:
        self.times.append((network, responder))

    def dropped(self, reason: str, count: int) -> None:
        self.counts[reason] += count


class Ends:
    """A sender and a responder of one host, without an event loop between them."""

    def __init__(self, address: str, key: bytes = b"", responder_key: bytes | None = None) -> None:
        self.clock = Clock()
        self.outcomes = Outcomes()
        self.guard = Guard([ipaddress.ip_network(f"{address}/8", strict=False)], self.clock)
        place = ipaddress.ip_address(address)
        self.responder = Responder(place, 0, self.guard, key if responder_key is None else responder_key)
        self.sender = Sender(place, 5, self.clock, key)
        self.target = ProbeTarget("r1", "h2", "0", place, self.responder.socket.port)

    def send(self, count: int = 1, path: int = 0) -> None:
        self.sender.send([(Probe(self.target, path, RACK), ROCE)] * count, self.outcomes)

    def until(self, name: object, count: int) -> None:
        """Let both ends work until something has happened so often."""

        def happened() -> bool:
            self.responder.work()
            self.sender.collect(self.outcomes)
            return self.outcomes.counts[name] >= count

        wait_until(happened)

    def source_port(self, path: int) -> int:
        return self.sender._paths[path].socket.port

    def close(self) -> None:
        self.sender.close()
        self.responder.close()


@pytest.fixture(
    params=[(FOUR, b""), (FOUR, KEY), (SIX, b""), (SIX, KEY)], ids=["ip4", "ip4-key", "ip6", "ip6-key"]
)
def ends(request) -> Iterator[Ends]:
    made = Ends(*request.param)
    yield made
    made.close()


def test_a_burst_is_answered_and_the_next_one_brings_its_times(ends) -> None:
    """The kernel begins to stamp packets a moment after the first socket wants it, so the first bursts may have no times, or some."""
    bursts = before = 0
    while len(ends.outcomes.times) < before + 10:
        before = len(ends.outcomes.times)
        bursts += 1
        ends.clock.now += 1  # so that the guard, which answers 64 at once, does not drop the seventh burst
        ends.send(10)
        ends.until("answered", 10 * bursts)
        assert bursts > 1 or not ends.outcomes.times
        wait_until(lambda: bool(ends.responder.work() or ends.responder._pending == {}))
    assert ends.outcomes.counts[106, 106] == 10 * bursts, "the class and the ECN codepoint, there and back"
    assert all(network >= 0 and responder > 0 for network, responder in ends.outcomes.times)
    assert ends.responder.answered == 10 * bursts
    assert not ends.guard.dropped


@pytest.mark.parametrize(
    ("arrival", "sendings", "second"),
    [
        ((1000, 0), [(1500, 0)], (1000, 1500, SOFTWARE_LOCAL)),
        ((1000, 70), [(1500, 0)], (1000, 1500, SOFTWARE_LOCAL)),
        ((1000, 0), [(1500, 0), (0, 90)], (1000, 1500, SOFTWARE_LOCAL)),
        ((1000, 70), [(1500, 0), (0, 90)], (70, 90, HARDWARE_ASSIST)),
    ],
    ids=["kernel", "NIC receives", "NIC sends", "NIC"],
)
def test_a_responder_takes_both_times_from_the_clock_that_has_both(
    arrival: tuple[int, int], sendings: list[tuple[int, int]], second: tuple[int, int, int]
) -> None:
    """The NIC may stamp what it sends and only PTP of what arrives, as for ptp4l, or the reverse. Times are nanoseconds."""
    responder = Responder(
        ipaddress.ip_address(FOUR), 0, Guard([ipaddress.ip_network("127.0.0.0/8")], Clock())
    )
    responder.socket.close()
    replies: list[bytes] = []
    waiting: list[Packet] = []
    reported: list[Sent] = []

    class Nic:
        def receive(self, _: int) -> list[Packet]:
            return [waiting.pop()] if waiting else []

        def send(self, content: bytes, *_: object) -> int:
            replies.append(content)
            reported.extend(Sent(len(replies) - 1, Times(*one)) for one in sendings)
            return len(replies) - 1

        def send_times(self, _: int) -> list[Sent]:
            return [reported.pop(0) for _ in range(len(reported))]

    responder.socket = Nic()
    for number in range(3):
        packet = pack_request(StampRequest(number, 1, 7))
        waiting.append(Packet(packet, (FOUR, 40000), Times(*arrival), 64, 0))
        responder.work()
    *_, earlier, last = map(read_reply, replies)
    assert last.follow_up == FollowUp(1, second[1], second[2])
    assert earlier.received == second[0]


def test_paths_have_source_ports_of_their_own_that_stay_until_the_next_window(ends) -> None:
    for path in (0, 1, 0):
        ends.send(path=path)
    first = ends.sender._paths.copy()
    assert len({ends.source_port(path) for path in (0, 1)}) == 2
    assert set(first) == {0, 1}
    ends.sender.close()
    ends.send()
    assert ends.sender._paths[0] is not first[0]
    assert first[1].socket.fileno() == -1, "closed"


def test_a_probe_without_a_reply_is_lost_once() -> None:
    ends = Ends(FOUR)
    ends.responder.close()
    ends.send(3)
    ends.clock.now += LOST - 0.1
    ends.sender.collect(ends.outcomes)
    assert ends.outcomes.counts["lost"] == 0
    ends.clock.now += 0.2
    for _ in range(2):
        ends.sender.collect(ends.outcomes)
    assert ends.outcomes.counts == Counter({"sent": 3, "lost": 3})
    ends.sender.close()


def test_a_late_reply_is_late_and_not_lost(monkeypatch) -> None:
    """Without the kernel's times those of the program count."""
    monkeypatch.setattr("roce_exporter.probe.sender._elapsed", lambda left, received: 0)
    ends = Ends(FOUR)
    ends.send()
    ends.clock.now += LATE + 1
    ends.until("late", 1)
    ends.clock.now += LOST
    ends.sender.collect(ends.outcomes)
    assert ends.outcomes.counts == Counter({"sent": 1, "late": 1})
    ends.close()


def test_a_reply_after_the_loss_is_dropped() -> None:
    ends = Ends(FOUR)
    ends.send()
    ends.clock.now += LOST
    ends.sender.collect(ends.outcomes)
    ends.until("unknown", 1)
    assert ends.outcomes.counts == Counter({"sent": 1, "lost": 1, "unknown": 1})
    ends.close()


def test_a_wrong_key_is_no_answer_and_counted() -> None:
    ends = Ends(FOUR, KEY, b"another key 1234")
    ends.send(2)
    wait_until(lambda: bool(ends.responder.work() or ends.guard.dropped["authentication"] == 2))
    assert ends.responder.answered == 0
    ends.close()


def test_what_is_sent_to_a_prober_by_others_changes_nothing() -> None:
    ends = Ends(FOUR)
    ends.send()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        for content in (b"", b"x" * 44, pack_request(StampRequest(0, 0, 5))):
            other.sendto(content, (FOUR, ends.source_port(0)))
        ends.until("unknown", 2)
    ends.until("answered", 1)
    assert ends.outcomes.counts["short"] == 1
    ends.close()


def test_two_responders_cannot_answer_each_other() -> None:
    """A forged request in the name of a responder gets one reply, which is no request."""
    one, other = Ends(FOUR), Ends(FOUR)
    reply = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forger:
        forger.bind((FOUR, 0))
        forger.settimeout(HUNG_SECONDS)
        forger.sendto(pack_request(StampRequest(0, 0, 5)), (FOUR, one.responder.socket.port))
        wait_until(lambda: bool(one.responder.work() or one.responder.answered))
        reply.append(forger.recv(2000))
        forger.sendto(reply[0], (FOUR, other.responder.socket.port))
        wait_until(lambda: bool(other.responder.work() or other.guard.dropped["no_request"]))
    assert read_reply(reply[0]).sequence == 0
    assert other.responder.answered == 0
    one.close()
    other.close()


def test_a_route_that_is_missing_is_refused_and_not_lost() -> None:
    ends = Ends(FOUR)
    ends.target = ends.target._replace(address=ipaddress.ip_address("255.255.255.255"))
    ends.send()
    ends.clock.now += LOST
    ends.sender.collect(ends.outcomes)
    assert ends.outcomes.counts == Counter({"refused": 1})
    ends.close()


def test_two_addresses_of_a_host_each_get_their_own_times() -> None:
    """One source port probes both, and one guard admits for both: a send time must come with a reply of the same address."""
    ends = Ends(FOUR)
    other = Responder(ipaddress.ip_address("127.0.0.2"), 0, ends.guard)
    there = ends.target._replace(address=ipaddress.ip_address("127.0.0.2"), port=other.socket.port)

    def work() -> bool:
        other.work()
        ends.responder.work()
        ends.sender.collect(ends.outcomes)
        return ends.outcomes.counts["answered"] == ends.outcomes.counts["sent"]

    def measured() -> bool:
        ends.clock.now += 1  # so that the guard answers all
        ends.sender.send([(Probe(one, 0, RACK), ROCE) for one in (ends.target, there)], ends.outcomes)
        wait_until(work)
        work()
        return len(ends.outcomes.times) >= 4

    wait_until(measured)  # the kernel begins to stamp packets a moment after the first socket wants it
    other.close()
    ends.close()
