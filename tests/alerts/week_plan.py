"""The truth of a simulated week, drawn by a seed before any rule is evaluated: what happens where and when, and what should notify.

A kind without `severity` is everyday work: whatever notifies because of it is false. Add a kind here, and both the draw and the judgement have it.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, NamedTuple

from week_hosts import LEAD, TAIL, Clip, Course, changed, clip

from roce_exporter.host.simulated import RECEIVE, TRANSMIT, Pause, paused
from roce_exporter.host.simulated.conditions import ETHTOOL, HOT

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY = 24 * 60
HOSTS_OF_A_CLUSTER, HOSTS_OF_A_SWITCH = 20, 10
PER = 200
"""Hosts for which `often` counts."""
CRITICAL, WARNING = "critical", "warning"


class Kind(NamedTuple):
    """What can happen."""

    name: str
    severity: str
    """Of what should notify; empty: nothing should."""
    alerts: str
    """The alerts of which the first is the right one; words."""
    course: Course | None = None
    """At the host; None: see `special`."""
    often: int = 1
    """Times a week in 200 hosts; at least once in any week."""
    hosts: int = 1
    victims: int = 0
    """Hosts of the cluster that are paused meanwhile."""
    special: str = ""
    """Of exporters: `silent`, `restart`, `reboot`, `upgrade`, `vanished`, `stuck`; of switches: `switch ...`."""
    minutes: int = 0
    """Of a special one."""
    fabric: bool = False
    """Whether the alert is about the cluster."""

    @property
    def lasts(self) -> int:
        """Minutes."""
        return self.course.minutes if self.course else self.minutes


STORM = paused(Pause(3, TRANSMIT, 1.0))
BLOCKED = Course(25, paused(Pause(3, RECEIVE, 1.0)), poll=0.25)
HELD = Course(25, paused(Pause(3, RECEIVE, 0.6, 0.004)))
SLOW = changed(
    load=0.9, pcie_stall=0.6, not_ready=20.0, discards=20.0, pauses=(Pause(3, TRANSMIT, 0.4, 0.0005),)
)
INCAST = changed(load=1.0, marked=0.08, notified=0.4, pauses=(Pause(3, RECEIVE, 0.06, 0.002),))

FAULTS = (
    Kind("a NIC that sends pause without end", CRITICAL, "RocePfcStorm", Course(25, STORM, poll=0.25), victims=3),
    Kind("short storms, one after the other", CRITICAL, "RocePfcStorm", Course(30, STORM, (3.0, 40.0), 0.25)),
    Kind("one storm of six seconds", WARNING, "RocePfcStormEnded", Course(5, STORM, (6.0, 300.0), 0.25)),
    Kind("hosts blocked by an unknown sender", CRITICAL, "RocePfcStormWithoutCulprit", BLOCKED, hosts=4, fabric=True),
    Kind("a tripped switch port without a known host", CRITICAL, "RoceSwitchWatchdogTripped", special="switch tripped", minutes=30),
    Kind("a path that loses one packet in 2,000", CRITICAL, "RocePacketLoss", Course(120, changed(load=0.5, lost=3000.0))),
    Kind("a path that loses one packet in 12,000", WARNING, "RocePacketLossSlow", Course(600, changed(load=0.5, lost=500.0))),
    Kind("no exporter of a fabric answers", CRITICAL, "RoceClusterBlind", special="blind", minutes=45, fabric=True),
    Kind("a cable that was pulled", WARNING, "RocePortDown", Course(120, changed(up=False)), often=2),
    Kind("a link that flaps", WARNING, "RocePortFaulty", Course(60, changed(up=False), (5.0, 400.0))),
    Kind("a bad cable", WARNING, "RocePortFaulty", Course(120, changed(wire_errors=5.0, lost=5.0)), often=3),
    Kind("a NIC that damages packets", WARNING, "RocePortFaulty", Course(90, changed(icrc_errors=2.0))),
    Kind("a slow receiver", WARNING, "RocePortFaulty RocePfcPauseBudget", Course(90, SLOW)),
    Kind("a slot that stalls", WARNING, "RocePortFaulty", Course(90, changed(pcie_stall=0.8))),
    Kind("a link at a quarter of its speed", WARNING, "RocePortFaulty", Course(120, changed(speed=100_000_000_000))),
    Kind("a module that is too hot", WARNING, "RocePortFaulty", Course(90, changed(module=HOT))),
    Kind("firmware that reports an error", WARNING, "RocePortFaulty", Course(90, changed(failing="fw_fatal"))),
    Kind("marks without CNPs", WARNING, "RocePortFaulty", Course(120, changed(load=0.9, marked=0.05, notifies=False))),
    Kind("traffic outside its priority", WARNING, "RocePortFaulty RoceConfigCheckFailed", Course(120, changed(priority=0))),
    Kind("a buffer that overflows", WARNING, "RocePortFaulty", Course(60, changed(discards=50.0))),
    Kind("PFC off on a host", WARNING, "RoceConfigCheckFailed RoceConfigDrift RocePfcMismatchOnLink", Course(150, lossless=())),
    Kind("a peer that is gone while others wait", WARNING, "RocePeerUnreachable", Course(90, changed(timeouts=0.5, broken=2)), hosts=2),
    Kind("ethtool that fails", WARNING, "RoceDataMissing", Course(90, faults=frozenset({ETHTOOL}))),
    Kind("an exporter that is dead", WARNING, "RoceExporterDown", special="silent", minutes=120),
    Kind("a device that fell off the bus", WARNING, "RoceDeviceVanished", special="vanished", minutes=120),
    Kind("queue pairs that nobody closes", WARNING, "RoceQueuePairsStuck", special="stuck", minutes=120),
    Kind("a switch that does not answer", WARNING, "RoceSwitchUnreadable", special="switch unreadable", minutes=60),
    Kind("headroom that is too small", WARNING, "RoceSwitchBufferLoss", special="switch headroom", minutes=60),
    Kind("a watchdog that was switched off", WARNING, "RoceSwitchWatchdogMissing", special="switch watchdog", minutes=120),
    Kind("ECN that was switched off", WARNING, "RoceSwitchEcnMisconfigured", special="switch ecn", minutes=120),
)  # fmt: skip
EVERYDAY = (
    Kind("a job at full speed", "", "", Course(180, changed(load=0.85, marked=0.001, notified=0.05)), often=300),
    Kind("a host without work", "", "", Course(120, changed(load=0.0)), often=150),
    Kind("an incast for hours", "", "", Course(240, INCAST), often=20),
    Kind("a job that is killed", "", "", Course(4, changed(timeouts=3.0, broken=3, load=0.1)), often=20, hosts=3),
    Kind("one packet that is lost", "", "", Course(1, changed(lost=1.0), (1.0, 60.0)), often=20),
    Kind("one frame that is damaged", "", "", Course(1, changed(wire_errors=1.0), (1.0, 60.0)), often=20),
    Kind("a few acknowledgements that are late", "", "", Course(60, changed(timeouts=1.0), (1.0, 1200.0)), often=20),
    Kind("ethtool that hangs for ten minutes", "", "", Course(10, faults=frozenset({ETHTOOL})), often=4),
    Kind("a driver that is loaded again", "", "", Course(4, changed(reset=True, up=False), (60.0, 240.0)), often=4),
    Kind("a cable that is moved", "", "", Course(4, changed(up=False), (150.0, 240.0)), often=6),
    Kind("a new version of the exporter", "", "", special="upgrade", minutes=2, often=PER),
    Kind("a host that starts again", "", "", special="reboot", minutes=7, often=20),
)  # fmt: skip
VICTIM = Kind("a victim", "", "", HELD)
KINDS = {kind.name: kind for kind in (*FAULTS, *EVERYDAY, VICTIM)}


class Event(NamedTuple):
    """Something that happens, from `start` to before `end`, in minutes of the week."""

    kind: str
    start: int
    end: int
    cluster: str
    hosts: tuple[str, ...]
    victims: tuple[str, ...] = ()
    switch: str = ""


class Fleet(NamedTuple):
    """Hosts by cluster; a switch for ten of them."""

    hosts: int
    days: int

    @property
    def clusters(self) -> dict[str, tuple[str, ...]]:
        """The hosts of each cluster."""
        names = [f"gpu-{number:03}" for number in range(self.hosts)]
        starts = range(0, self.hosts, HOSTS_OF_A_CLUSTER)
        return {
            f"fabric-{place}": tuple(names[one : one + HOSTS_OF_A_CLUSTER])
            for place, one in enumerate(starts)
        }

    @property
    def switches(self) -> dict[str, tuple[str, ...]]:
        """The hosts behind each switch, by its name."""
        return {
            f"leaf-{cluster[7:]}-{one // HOSTS_OF_A_SWITCH}": hosts[one : one + HOSTS_OF_A_SWITCH]
            for cluster, hosts in self.clusters.items()
            for one in range(0, len(hosts), HOSTS_OF_A_SWITCH)
        }

    @property
    def minutes(self) -> int:
        """The length of the history."""
        return self.days * DAY


def draw(seed: int, fleet: Fleet) -> list[Event]:
    """The events of a week. Those of one host follow each other; those of one cluster may overlap."""
    random = Random(seed)  # noqa: S311 - a reproducible week, not a secret
    taken: dict[str, list[tuple[int, int]]] = {}
    found = (
        _placed(kind, random, fleet, taken)
        for kind in (*FAULTS, *EVERYDAY)
        for _ in range(max(1, round(kind.often * fleet.hosts / PER)))
    )
    return sorted(filter(None, found), key=lambda one: one.start)


def _placed(
    kind: Kind, random: Random, fleet: Fleet, taken: dict[str, list[tuple[int, int]]]
) -> Event | None:
    """An event at a free place; None where the week is full, which only everyday work meets."""
    for _ in range(200):
        cluster = random.choice([*fleet.clusters])
        hosts = fleet.clusters[cluster]
        start = random.randrange(LEAD + 120, fleet.minutes - kind.lasts - TAIL)
        whole = (start - LEAD, start + kind.lasts + TAIL)
        if kind.special.startswith("switch"):
            switch = random.choice([one for one, behind in fleet.switches.items() if behind[0] in hosts])
            places, chosen, victims = [switch], (), ()
        else:
            switch = ""
            number = len(hosts) if kind.special == "blind" else kind.hosts + kind.victims
            places = random.sample(hosts, number)
            chosen, victims = tuple(places[: number - kind.victims]), tuple(places[number - kind.victims :])
        if all(whole[1] <= begin or end <= whole[0] for one in places for begin, end in taken.get(one, ())):
            for one in places:
                taken.setdefault(one, []).append(whole)
            return Event(kind.name, start, start + kind.lasts, cluster, chosen, victims, switch)
    assert not kind.severity, f"no place for {kind.name}: a larger fleet or a longer week"
    return None


def courses() -> Iterator[tuple[str, Course]]:
    """Every course that a week may need, by its name; the healthy ones differ by their random numbers."""
    for kind in KINDS.values():
        if kind.course:
            yield kind.name, kind.course
    for seed in range(1, 5):
        yield f"healthy {seed}", Course(240, seed=seed)


def clip_of(name: str) -> Clip:
    """The clip of the course of this name: courses have functions, which no other process can be sent."""
    return clip(dict(courses())[name])
