"""Storms that a script plays into the cards in steps of 10 ms are found and counted correctly, without false storms.

The guest's processor is slow: the script computes its steps from the time that really passed there.
"""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from daemon import Exporter, value, wait_until
from nic import Table

STEP = 0.01
FRAMES_A_SECOND = 3000
PACKETS_A_SECOND = 100_000


class Played(NamedTuple):
    """The counts of a port so far."""

    paused: float
    """Seconds."""
    frames: int
    packets: int
    begun: int
    """Pauses."""
    ended: int


def mlx5(now: Played) -> dict[str, int]:
    return {
        "rx_prio3_pause_duration": round(now.paused * 1e6),
        "rx_prio3_pause_transition": now.ended,
        "rx_prio3_pause": now.frames,
        "tx_prio3_packets": now.packets,
    }


def bnxt(now: Played) -> dict[str, int]:
    return {
        "pfc_pri3_rx_duration_us": round(now.paused * 1e6),
        "pfc_pri3_rx_transitions": now.begun + now.ended,
        "rx_pfc_ena_frames_pri3": now.frames,
        "tx_packets_pri3": now.packets,
    }


def ionic(now: Played) -> dict[str, int]:
    return {
        "rx_pripause_3_1us_count": round(now.paused * 1e6),
        "frames_rx_pripause": now.frames,
        "frames_tx_pri_3": now.packets,
    }


def ice(now: Played) -> dict[str, int]:
    return {"rx_priority_3_xoff.nic": now.frames, "tx_bytes.nic": now.packets * 1000}


Spell = Callable[[Played], dict[str, int]]


class Traffic:
    """The counters of a port: pause that is on or off, and packets that it passes. Time is the machine's own."""

    def __init__(self, table: Table, spell: Spell) -> None:
        self._table = table
        self._spell = spell
        self._paused = self._frames = self._packets = 0.0
        self._begun = self._ended = 0
        self._last = time.monotonic()

    def play(self, seconds: float, *, pause: bool) -> float:
        """Continue for `seconds`; returns the actual duration."""
        self._ended = self._begun
        self._begun += pause
        begin = self._last = time.monotonic()
        while self._last < begin + seconds:
            time.sleep(STEP)
            now = time.monotonic()
            passed, self._last = now - self._last, now
            self._paused += passed * pause
            self._frames += passed * pause * FRAMES_A_SECOND
            self._packets += passed * (not pause) * PACKETS_A_SECOND
            played = (self._paused, int(self._frames), int(self._packets), self._begun, self._ended)
            self._table.set(self._spell(Played(*played)))
        return self._last - begin


@pytest.fixture(scope="module")
def watching(cards) -> Iterator[Exporter]:
    """An exporter whose sampler polls ten times a second."""
    made = Exporter("--sampler.mode=fixed")
    yield made
    assert made.stop() == 0


def storms(exporter: Exporter, netdev: str) -> list[dict[str, object]]:
    return [event for event in exporter.events() if event["netdev"] == netdev]


class Case(NamedTuple):
    """One kind of card under a storm."""

    device: str
    spell: Spell
    refresh: int
    """Milliseconds between two renewals of its counters; 0: always current."""
    slack: float
    """Seconds by which the length may be wrong: a renewal at both ends, and polls that a busy host delays."""


CASES = (Case("mlx5_0", mlx5, 0, 1.0), Case("bnxt_re0", bnxt, 1000, 3.0), Case("ionic_0", ionic, 0, 1.0))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.device)
def test_a_storm_is_found_and_is_as_long_as_it_was(cards, watching, case) -> None:
    nic = cards[case.device]
    nic.leg("ethtool").write("refresh_ms", str(case.refresh))
    netdev = nic.netdevs[0]
    traffic = Traffic(nic.leg("ethtool"), case.spell)
    traffic.play(5 if case.refresh else 2, pause=False)
    lasted = traffic.play(4, pause=True)
    traffic.play(5, pause=False)
    (storm,) = wait_until(lambda: [one for one in storms(watching, netdev) if one["end"]])
    assert storm["direction"] == "receive"
    assert storm["priority"] == "3"
    assert storm["reason"] == "restored"
    assert abs(storm["duration"] - lasted) < case.slack
    samples = watching.scrape()
    labels = {"netdev": netdev, "priority": "3", "direction": "receive"}
    assert value(samples, "roce_pfc_storms_total", **labels) == 1
    assert value(samples, "roce_pfc_storm_active", **labels) == 0
    assert value(samples, "roce_pfc_pause_episode_seconds_count", **labels) == 1
    assert value(samples, "roce_pfc_pause_episode_seconds_sum", **labels) == pytest.approx(lasted, abs=1e-5)
    # Only the observed part of a storm counts: late polls are dropped, not interpolated.
    assert lasted / 2 < value(samples, "roce_pfc_storm_seconds_total", **labels) <= storm["duration"] + 0.001


LENGTHS = (0.03, 0.15, 0.3, 0.7, 1.7)


@pytest.mark.parametrize("case", [CASES[0], CASES[2]], ids=lambda case: case.device)
def test_every_pause_is_counted_with_its_length(cards, watching, case) -> None:
    """Also where the NIC does not count ends of pauses, if the pauses are separate."""
    nic = cards[case.device]
    nic.leg("ethtool").write("refresh_ms", "0")
    name = "roce_pfc_pause_episode_seconds"
    labels = {"netdev": nic.netdevs[0], "priority": "3", "direction": "receive"}
    nic.reset()
    traffic = Traffic(nic.leg("ethtool"), case.spell)
    traffic.play(2, pause=False)
    before = watching.scrape()
    played = []
    for length in LENGTHS:
        played.append(traffic.play(length, pause=True))
        traffic.play(1.2, pause=False)
    after = watching.scrape()

    def more(suffix: str, **le: str) -> float:
        return value(after, name + suffix, **labels, **le) - value(before, name + suffix, **labels, **le)

    assert more("_count") == len(LENGTHS)
    assert more("_sum") == pytest.approx(sum(played), abs=1e-4)
    for bound in ("0.01", "0.05", "0.1", "0.2", "0.4", "1.0", "2.5", "+Inf"):
        assert more("_bucket", le=bound) == sum(length <= float(bound) for length in played), (bound, played)


def test_congestion_is_no_storm(cards, watching) -> None:
    """Half of the time is paused, and packets flow in between: PFC works as intended."""
    nic = cards["mlx5_0"]
    before = len(storms(watching, nic.netdevs[0]))
    traffic = Traffic(nic.leg("ethtool"), mlx5)
    for _ in range(40):
        traffic.play(0.05, pause=True)
        traffic.play(0.05, pause=False)
    assert len(storms(watching, nic.netdevs[0])) == before
    labels = {"netdev": nic.netdevs[0], "priority": "3", "direction": "receive"}
    assert value(watching.scrape(), "roce_pfc_storm_active", **labels) == 0


def test_xoff_without_time_is_evaluated_by_frames(cards, watching) -> None:
    """The ice driver counts no pause time: its storms are detected by frames, and the exporter reports the method."""
    nic = cards["irdma0"]
    traffic = Traffic(nic.leg("ethtool"), ice)
    traffic.play(2, pause=False)
    traffic.play(4, pause=True)
    traffic.play(3, pause=False)
    samples = watching.scrape()
    labels = {"netdev": nic.netdevs[0], "priority": "3", "direction": "receive"}
    told = {
        series: number
        for series, number in samples.items()
        if "roce_pfc_storm" in series and 'netdev="roce3"' in series
    }
    assert value(samples, "roce_pfc_storm_detector_state", **labels) is not None, told
    methods = [
        series
        for series in told
        if series.startswith("roce_pfc_storm_detector_info") and 'priority="3"' in series
    ]
    assert methods
    assert 'method="pause_time"' not in methods[0]


def test_a_hang_of_the_driver_is_reported_by_the_sampler(cards, watching) -> None:
    nic = cards["ionic_0"]
    with nic.leg("ethtool").broken("hang"):
        wait_until(
            lambda: value(watching.scrape(), "roce_exporter_sampler_stuck", netdev=nic.netdevs[0]) == 1
        )
    wait_until(lambda: value(watching.scrape(), "roce_exporter_sampler_stuck", netdev=nic.netdevs[0]) == 0)
