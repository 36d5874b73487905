"""A responder under a flood of forged requests: it answers no more than its limits, keeps its memory, and serves the honest prober."""

import ipaddress
import socket
import time

import psutil
import pytest

from roce_exporter.probe.guard import KNOWN_SECONDS, TOTAL, Guard
from roce_exporter.probe.plan import RACK, Probe, ProbeTarget
from roce_exporter.probe.responder import Responder
from roce_exporter.probe.sender import Sender, TrafficClass
from roce_exporter.probe.stamp import StampRequest, pack_request

pytestmark = pytest.mark.ci

PACKETS = 100_000
"""Ten seconds of 10,000 a second."""
BATCH = 100
HONEST = 50
"""Batches of the flood between two probes of the honest sender."""


class Flood:
    """Moves on by a hundredth of a second per batch, however long that takes here."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.outcomes: dict[str, int] = {}

    def __call__(self) -> float:
        return self.now

    def __getattr__(self, name: str) -> object:
        def count(*_: object) -> None:
            self.outcomes[name] = self.outcomes.get(name, 0) + 1

        return count


def test_a_flood_is_answered_within_the_limits_and_an_honest_prober_as_before() -> None:
    flood = Flood()
    guard = Guard([ipaddress.ip_network("127.0.0.0/8")], flood)
    responder = Responder(ipaddress.ip_address("127.0.0.1"), 0, guard)
    honest = Sender(ipaddress.ip_address("127.0.0.2"), 5, flood)
    target = ProbeTarget("r", "h", "0", ipaddress.ip_address("127.0.0.1"), responder.socket.port)
    probe = (Probe(target, 0, RACK), TrafficClass("roce", 26, is_ecn_capable=True))
    forgers = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(40)]
    for number, forger in enumerate(forgers):
        forger.bind((f"127.0.{number + 1}.1", 0))
        forger.setblocking(False)
    packet = pack_request(StampRequest(1, time.time_ns(), 7))

    honest.send([probe], flood)
    responder.work()
    honest.collect(flood)
    flood.now += KNOWN_SECONDS
    answered = responder.answered
    used = psutil.Process().memory_info().rss
    begun = flood.now
    for batch in range(PACKETS // BATCH):
        if batch % HONEST == 0:
            honest.send([probe], flood)
            responder.work()
            honest.collect(flood)
        for number in range(BATCH):
            forgers[(batch + number) % len(forgers)].sendto(packet, ("127.0.0.1", responder.socket.port))
        responder.work()
        flood.now += BATCH / 10_000
    seconds = flood.now - begun
    for forger in forgers:
        assert len(forger.recv(2000)) == len(packet)
        forger.close()
    assert responder.answered - answered <= TOTAL * seconds + TOTAL
    assert sum(guard.dropped.values()) > PACKETS / 2
    assert flood.outcomes["answered"] == flood.outcomes["sent"] == 1 + PACKETS // BATCH // HONEST
    assert "lost" not in flood.outcomes
    assert psutil.Process().memory_info().rss - used < 8 << 20
    honest.close()
    responder.close()
