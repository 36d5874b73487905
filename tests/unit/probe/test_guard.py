"""Whom the responder answers: its networks, its rates, and the honest sender during a flood."""

from __future__ import annotations

import ipaddress
from collections import Counter

import pytest
from clock import Clock

from roce_exporter.probe.guard import FOLLOW_UPS, KNOWN_SECONDS, SOURCES, Guard, GuardLimits
from roce_exporter.probe.stamp import FollowUp

NETWORKS = [ipaddress.ip_network("10.0.0.0/16"), ipaddress.ip_network("fd00::/64")]
HONEST = "10.0.0.9"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guard(clock: Clock) -> Guard:
    return Guard(NETWORKS, clock)


@pytest.mark.parametrize(
    ("address", "port", "reason"),
    [
        ("10.0.3.4", 40000, ""),
        ("fd00::7", 40000, ""),
        ("fd00::7%eth0", 40000, ""),
        ("10.1.0.1", 40000, "not_allowed"),
        ("fd00:0:0:1::7", 40000, "not_allowed"),
        ("224.0.0.1", 40000, "not_allowed"),
        ("0.0.0.0", 40000, "not_allowed"),  # noqa: S104 - an address that is sent from
        ("10.0.3.4", 1023, "port"),
    ],
)
def test_only_ports_of_listed_networks_are_answered(
    guard: Guard, address: str, port: int, reason: str
) -> None:
    assert guard.admit_address(address, port) is (not reason)
    assert guard.dropped == Counter([reason] if reason else [])


def test_without_a_network_nothing_is_answered(clock: Clock) -> None:
    assert not Guard([], clock).admit_address(HONEST, 40000)


def admitted(guard: Guard, address: str, count: int) -> int:
    return sum(guard.admit(address) is not None for _ in range(count))


def test_a_source_has_a_burst_and_then_a_rate(guard: Guard, clock: Clock) -> None:
    assert admitted(guard, HONEST, 100) == 64
    clock.now += 1
    assert admitted(guard, HONEST, 100) == 20
    assert guard.dropped == Counter({"source_rate": 116})


def test_a_flood_of_forged_sources_leaves_half_of_the_rate_to_known_ones(guard: Guard, clock: Clock) -> None:
    """The honest one is silent for five seconds between its bursts, and in each of these ten thousand new sources come."""
    for _ in range(4):
        assert admitted(guard, HONEST, 20) == 20
        clock.now += KNOWN_SECONDS / 3
    for second in range(10):
        for number in range(10_000):
            guard.admit(f"10.0.{number % 250}.{(number // 250 + 40 * second) % 250}")
        if second % 5 == 0:
            assert admitted(guard, HONEST, 20) == 20
        clock.now += 1
    assert len(guard) == SOURCES // 2 + 1
    assert guard.dropped["total_rate"] > 90_000


def test_the_rate_of_all_is_limited(clock: Clock) -> None:
    guard = Guard(NETWORKS, clock, GuardLimits(total=100))
    assert sum(admitted(guard, f"10.0.0.{number}", 10) for number in range(100)) == 50


def test_send_times_wait_for_their_own_session_and_are_bounded(guard: Guard) -> None:
    source = guard.admit(HONEST)
    assert source is not None
    for number in range(FOLLOW_UPS + 1):
        guard.session(source, 40000, 1).append(FollowUp(number, 1, 2))
    assert guard.session(source, 40000, 1)[0].sequence == 1
    assert not guard.session(source, 40000, 2)
    for number in range(GuardLimits().sessions):
        guard.session(source, 50000, number)
    assert len(source.follow_ups) == GuardLimits().sessions
    assert not guard.session(source, 40000, 1), "the oldest session is forgotten"
