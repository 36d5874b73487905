"""The truth of a simulated week, drawn by a seed before any rule is evaluated: what happens where and when, and what should notify.

A kind without `severity` is everyday work: whatever notifies because of it is false. Add a kind here, and both the draw and the judgement have it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import NamedTuple

from remote_write import regular
from week_hosts import GONE, LEAD, MINUTE, RESTARTS, TAIL, Clip, Course, Part, changed, clip, week

from roce_exporter.host.simulated.conditions import ETHTOOL, HOT, RECEIVE, TRANSMIT, Pause
from roce_exporter.host.simulated.scenarios import paused

BEGIN = 1_767_225_600
"""2026-01-01T00:00:00Z."""
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
    Kind("a path that loses one packet in 2,000", CRITICAL, "RocePacketLoss", Course(100, changed(load=0.5, lost=3000.0))),
    Kind("a path that loses one packet in 12,000", WARNING, "RocePacketLossSlow", Course(420, changed(load=0.5, lost=500.0))),
    Kind("no exporter of a fabric answers", CRITICAL, "RoceClusterBlind", special="blind", minutes=45, fabric=True),
    Kind("a cable that was pulled", WARNING, "RocePortDown", Course(60, changed(up=False)), often=2),
    Kind("a link that flaps", WARNING, "RocePortFaulty", Course(60, changed(up=False), (5.0, 400.0))),
    Kind("a bad cable", WARNING, "RocePortFaulty", Course(60, changed(wire_errors=5.0, lost=5.0)), often=3),
    Kind("a NIC that damages packets", WARNING, "RocePortFaulty", Course(60, changed(icrc_errors=2.0))),
    Kind("a slow receiver", WARNING, "RocePortFaulty RocePfcPauseBudget", Course(60, SLOW)),
    Kind("a slot that stalls", WARNING, "RocePortFaulty", Course(60, changed(pcie_stall=0.8))),
    Kind("a link at a quarter of its speed", WARNING, "RocePortFaulty", Course(60, changed(speed=100_000_000_000))),
    Kind("a module that is too hot", WARNING, "RocePortFaulty", Course(60, changed(module=HOT))),
    Kind("firmware that reports an error", WARNING, "RocePortFaulty", Course(60, changed(failing="fw_fatal"))),
    Kind("marks without CNPs", WARNING, "RocePortFaulty", Course(60, changed(load=0.9, marked=0.05, notifies=False))),
    Kind("traffic outside its priority", WARNING, "RocePortFaulty RoceConfigCheckFailed", Course(60, changed(priority=0))),
    Kind("a buffer that overflows", WARNING, "RocePortFaulty", Course(60, changed(discards=50.0))),
    Kind("PFC off on a host", WARNING, "RoceConfigCheckFailed RoceConfigDrift RocePfcMismatchOnLink", Course(60, lossless=())),
    Kind("a peer that is gone while others wait", WARNING, "RocePeerUnreachable", Course(60, changed(timeouts=0.5, broken=2)), hosts=2),
    Kind("ethtool that fails", WARNING, "RoceDataMissing", Course(60, faults=frozenset({ETHTOOL}))),
    Kind("an exporter that is dead", WARNING, "RoceExporterDown", special="silent", minutes=120),
    Kind("a device that fell off the bus", WARNING, "RoceDeviceVanished", special="vanished", minutes=120),
    Kind("queue pairs that nobody closes", WARNING, "RoceQueuePairsStuck", special="stuck", minutes=120),
    Kind("a switch that does not answer", WARNING, "RoceSwitchUnreadable", special="switch unreadable", minutes=60),
    Kind("headroom that is too small", WARNING, "RoceSwitchBufferLoss", special="switch headroom", minutes=60),
    Kind("a watchdog that was switched off", WARNING, "RoceSwitchWatchdogMissing", special="switch watchdog", minutes=120),
    Kind("ECN that was switched off", WARNING, "RoceSwitchEcnMisconfigured", special="switch ecn", minutes=120),
)  # fmt: skip
EVERYDAY = (
    Kind("a job at full speed", "", "", Course(60, changed(load=0.85, marked=0.001, notified=0.05)), often=300),
    Kind("a host without work", "", "", Course(60, changed(load=0.0)), often=150),
    Kind("an incast for hours", "", "", Course(150, INCAST), often=20),
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
        yield f"healthy {seed}", Course(120, seed=seed)


def clip_of(name: str) -> Clip:
    """The clip of the course of this name: courses have functions, which no other process can be sent."""
    return clip(dict(courses())[name])


# ---- the series of the fleet: each host's from its clips, and those of the switches at the other ends, which are made from the events

LABEL = re.compile(r'(\w+)="([^"]*)"')
HEALTHY = ("healthy 1", "healthy 2", "healthy 3", "healthy 4")
DEVICES = re.compile(r'roce_\w+\{.*device="')


def written(
    fleet: Fleet, cluster: str, events: list[Event], clips: Mapping[str, Clip], seed: int
) -> Iterator[bytes]:
    """Every series of a cluster in the week, as Prometheus has it after its scrapes."""
    macs = {
        host: f"02:00:00:01:{place // 256:02x}:{place % 256:02x}"
        for place, host in enumerate(host for hosts in fleet.clusters.values() for host in hosts)
    }
    for host in fleet.clusters[cluster]:
        target = {"cluster": cluster, "job": "roce", "instance": f"{host}:10123"}
        parts = _parts(host, events, clips, fleet.minutes, Random(f"{seed}/{host}"))  # noqa: S311 - reproducible
        for name, values in week(parts, fleet.minutes).items():
            labels = _named(name) | target
            if "hostname" in labels:
                labels |= {"hostname": host, "mac": macs[host]}
            yield regular(labels, BEGIN, MINUTE, values)
    for switch, hosts in fleet.switches.items():
        if hosts[0] in fleet.clusters[cluster]:
            target = {"cluster": cluster, "job": "roce-switches", "instance": switch}
            own = [one for one in events if one.switch == switch or {*one.hosts} & {*hosts}]
            made = _switch(switch, hosts, [macs[host] for host in hosts], own, fleet.minutes)
            for name, values in made.items():
                yield regular(_named(name) | target, BEGIN, MINUTE, values)


def _named(series: str) -> dict[str, str]:
    return {"__name__": series.partition("{")[0], **dict(LABEL.findall(series))}


def _parts(
    host: str, events: list[Event], clips: Mapping[str, Clip], minutes: int, random: Random
) -> list[Part]:
    """The week of a host: clips of its events, healthy ones between them."""
    found: list[Part] = []
    at = 0
    for event in [one for one in events if host in one.hosts + one.victims]:
        kind = VICTIM if host in event.victims else KINDS[event.kind]
        start = event.start - LEAD
        found += _calm(at, start, clips, random)
        healthy = clips[random.choice(HEALTHY)]
        at = event.end + TAIL
        match kind.special:
            case "" if kind.course and (kind.course.faults or not kind.course.lossless):
                # these are the whole clip's
                wrong = Part(event.start, clips[kind.name], LEAD)
                found += [Part(start, healthy), wrong, Part(event.end, healthy, LEAD + kind.lasts)]
            case "":
                found.append(Part(start, clips[kind.name]))
            case "blind" | "silent":
                found += [
                    Part(start, healthy),
                    Part(event.start, None),
                    Part(event.end, healthy, LEAD + kind.minutes),
                ]
            case "upgrade":
                back = Part(event.end, healthy, LEAD + kind.minutes, RESTARTS.pattern)
                found += [Part(start, healthy), Part(event.start, None), back]
            case "reboot":
                back = Part(event.end, healthy, LEAD + kind.minutes, ".*")
                found += [Part(start, healthy), Part(event.start, None), back]
            case special:
                found.append(Part(start, _SPECIAL[special](healthy, kind.minutes)))
    return [*found, *_calm(at, minutes, clips, random)]


def _calm(start: int, end: int, clips: Mapping[str, Clip], random: Random) -> Iterator[Part]:
    while start < end:
        chosen = clips[random.choice(HEALTHY)]
        yield Part(start, chosen, LEAD)
        start = min(end, start + chosen.minutes - LEAD)


def _vanished(healthy: Clip, minutes: int) -> Clip:
    """The exporter has no device for some minutes."""
    inside = range(LEAD, LEAD + minutes)
    devices = {
        name: [GONE if place in inside else value for place, value in enumerate(values)]
        for name, values in healthy.series.items()
        if DEVICES.match(name)
    }
    count = {"roce_exporter_devices": [float(place not in inside) for place in range(healthy.minutes)]}
    return Clip(healthy.minutes, healthy.series | devices | count)


def _stuck(healthy: Clip, minutes: int) -> Clip:
    """An owner has queue pairs in state ERR for some minutes."""
    inside = range(LEAD, LEAD + minutes)
    name = 'roce_owner_queue_pairs{device="mlx5_0",owner="slurm/4711.0",state="ERR",type="RC"}'
    return Clip(
        healthy.minutes,
        healthy.series | {name: [8.0 * (place in inside) for place in range(healthy.minutes)]},
    )


_SPECIAL = {"vanished": _vanished, "stuck": _stuck}


# ---- switches


def _switch(
    name: str, hosts: tuple[str, ...], macs: list[str], events: list[Event], minutes: int
) -> dict[str, list[float]]:
    """A SONiC leaf with its hosts and a storage server without an exporter, with PFC, ECN and the watchdog on."""
    at = f'device="{name}"'
    found = {
        f'roce_switch_info{{{at},os="sonic",version="202405",model="",asic=""}}': [1.0] * minutes,
        f"roce_switch_probe_success{{{at}}}": [1.0] * minutes,
        **{
            f'roce_switch_source_up{{{at},source="{one}"}}': [1.0] * minutes
            for one in ("port_counters", "watermarks")
        },
        "up": [1.0] * minutes,
    }
    for place, mac in enumerate([*macs, "02:00:00:ff:00:00"]):
        neighbor = 'neighbor="",neighbor_chassis="",neighbor_port="",neighbor_description="",port_id_kind="mac",source="lldp"'
        port = f'{at},port="Ethernet{4 * place}"'
        queue = f'{port},queue="3"'
        constant = {
            f'roce_switch_lldp_neighbor_info{{{port},{neighbor},neighbor_mac="{mac}"}}': 1.0,
            f'roce_switch_queue_info{{{port},priority="3",queue="3",priority_group="3"}}': 1.0,
            f'roce_switch_pfc_enabled{{{port},priority="3"}}': 1.0,
            f"roce_switch_pfc_watchdog_enabled{{{queue}}}": 1.0,
            f"roce_switch_pfc_watchdog_acts{{{queue}}}": 1.0,
            f"roce_switch_pfc_watchdog_tripped{{{queue}}}": 0.0,
            f"roce_switch_pfc_watchdog_trips_total{{{queue}}}": 3.0,
            f"roce_switch_config_ecn_enabled{{{queue}}}": 1.0,
            f"roce_switch_config_ecn_minimum_bytes{{{queue}}}": 200_000.0,
            f"roce_switch_config_ecn_maximum_bytes{{{queue}}}": 800_000.0,
            f'roce_switch_buffer_pause_threshold_bytes{{{port},priority_group="3"}}': 1_000_000.0,
            f'roce_switch_buffer_discards_total{{{port},priority_group="3"}}': 0.0,
            f"roce_switch_queue_discards_total{{{queue}}}": 0.0,
        }
        found |= {series: [value] * minutes for series, value in constant.items()}
    for event in events:
        _happens(found, name, hosts, event)
    return found


def _happens(found: dict[str, list[float]], name: str, hosts: tuple[str, ...], event: Event) -> None:
    """What an event changes on a switch."""
    kind, span = KINDS[event.kind], range(event.start, event.end)
    last, ports = len(hosts), [hosts.index(host) for host in event.hosts if host in hosts]
    match kind.special:
        case "switch tripped":
            _trips(found, name, last, span)
        case "switch unreadable":
            found |= {
                series: [GONE if place in span else one for place, one in enumerate(values)]
                for series, values in found.items()
                if "port=" in series
            }
            found[f'roce_switch_probe_success{{device="{name}"}}'][span.start : span.stop] = [0.0] * len(span)
        case "switch headroom":
            _set(
                found,
                f'roce_switch_buffer_discards_total{{device="{name}",port="Ethernet0"',
                range(span.start, len(found["up"])),
                lambda minute: 40.0 * min(minute, len(span)),
            )
        case "switch watchdog":
            _set(found, f'roce_switch_pfc_watchdog_enabled{{device="{name}"', span, lambda _: 0.0)
        case "switch ecn":
            _set(found, f'roce_switch_config_ecn_enabled{{device="{name}"', span, lambda _: 0.0)
        case "" if kind.name == "a NIC that sends pause without end":
            for port in ports:
                _trips(found, name, port, span)


def _trips(found: dict[str, list[float]], name: str, port: int, span: range) -> None:
    at = f'{{device="{name}",port="Ethernet{4 * port}"'
    _set(found, f"roce_switch_pfc_watchdog_tripped{at}", span, lambda _: 1.0)
    _set(
        found, f"roce_switch_pfc_watchdog_trips_total{at}", range(span.start, len(found["up"])), lambda _: 4.0
    )


def _set(found: dict[str, list[float]], begins: str, span: range, value: Callable[[int], float]) -> None:
    for series, values in found.items():
        if series.startswith(begins):
            values[span.start : span.stop] = [value(minute - span.start) for minute in span]
