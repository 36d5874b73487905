"""What the exporter serves for a host while something happens: the real exporter on a simulated kernel, a scrape a minute.

A week of a host is put together from such clips: a host whose exporter is not disturbed serves the same whenever it happens. A clip begins and ends
with minutes in which all is well, so that windows and the memory of the verdict are the host's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import re
from dataclasses import replace
from functools import cache
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from alert_promtool import delivered
from remote_write import regular
from simulated_daemon import START, VIRTUAL_FUNCTIONS, sample_lines
from week_plan import KINDS, VICTIM

from roce_exporter.assemble import Clock, Parts, assemble
from roce_exporter.catalog.row import MetricSet
from roce_exporter.collect.collector import Settings
from roce_exporter.exposition import Format, Renderer
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.fastloop import Pace, Sampler
from roce_exporter.host.simulated import Conditions, PortSeed, ScriptedPort, Span, bursts, overlay
from roce_exporter.host.simulated.kernel import simulate_script
from roce_exporter.host.simulated.scenarios import EASE, QUIET, RUSH, Window
from roce_exporter.view.host_history import HostClock, play

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from week_plan import Event, Fleet

MINUTE = 60
LEAD, TAIL = 20, 75
"""Minutes of a clip before and after what happens: as long as the longest memory of the verdict, an hour."""
COUNTED = re.compile(r"\w+_(total|bucket|count|sum)\b")
RESTARTS = re.compile(r"roce_(pfc_storms|pfc_storm_near_misses|pfc_detector_faults|exporter_\w+)_total\b")
"""Counters of the exporter itself, which a restart of it sets to zero."""
GONE = math.nan


class Clip(NamedTuple):
    """The values of each series, a minute apart; `GONE` is no sample."""

    minutes: int
    series: dict[str, list[float]]


class Course(NamedTuple):
    """What happens to the one port of a host for some minutes."""

    minutes: int
    change: Callable[[Conditions], Conditions] | None = None
    windows: tuple[float, float] | None = None
    """It happens for the first number of seconds, each time the second number of seconds has passed; None: all the time."""
    poll: float = 1.0
    """Seconds between two polls of the fast loop: long where no storm is to be found, to save time."""
    faults: frozenset[str] = frozenset()
    lossless: tuple[int, ...] = (3,)
    seed: int = 1


@cache
def names() -> frozenset[str]:
    """The metrics that the rules of the alerts read."""
    rules = [rule for group in delivered() for rule in group["rules"]]
    return frozenset(re.findall(r"(?<![:\w])roce_\w+(?![:\w])", " ".join(rule["expr"] for rule in rules)))


def clip(course: Course) -> Clip:
    """The minutes of a course, with those before and after it."""
    logging.disable(logging.CRITICAL)
    return asyncio.run(_clip(course))


def _spans(course: Course) -> Iterator[Span]:
    calm = bursts(PortSeed(0, course.seed).random(), EASE, RUSH, QUIET)
    if course.change is None:
        return calm
    start, end = LEAD * MINUTE, (LEAD + course.minutes) * MINUTE
    lasting, every = course.windows or (end - start, end - start)
    starts = [start + number * every for number in range(int((end - start) / every))]
    return overlay(calm, [Window(one, one + lasting, course.change) for one in starts])


async def _clip(course: Course) -> Clip:
    clock = HostClock()
    pace = Pace(interval=course.poll, idle=1.0, linger=30.0 if course.poll < 1 else 0.0)
    parts = Parts(Settings(disabled=frozenset({VIRTUAL_FUNCTIONS}), timeout=60.0), pace=pace, owners=None)
    port = ScriptedPort("mlx5", _spans(course), lossless=course.lossless, faults=course.faults)
    served, renderer = ServedSeries(MetricSet.LEAN), Renderer()
    minutes = LEAD + course.minutes + TAIL
    found: dict[str, list[float]] = {}
    kernel = simulate_script([port], clock=clock)
    with contextlib.closing(assemble(kernel, parts, Clock(clock, lambda: START + clock.now))) as exporter:
        reach = play(clock, exporter.part(Sampler))
        for minute in range(-2, minutes):
            await reach((minute + 2) * MINUTE)
            await exporter.observe_complete()
            text = renderer.render(served.select((await exporter.observe()).samples), Format.TEXT).decode()
            for line in sample_lines(text) if minute >= 0 else ():
                name, _, value = line.rpartition(" ")
                if name.partition("{")[0] in names():
                    found.setdefault(name, [GONE] * minutes)[minute] = float(value)
    return Clip(minutes, found)


def changed(**fields: object) -> Callable[[Conditions], Conditions]:
    """A change of conditions to these values."""
    return lambda conditions: replace(conditions, **fields)  # type: ignore[arg-type]  # any field of the conditions


# ---- from clips to the week of a host


class Part(NamedTuple):
    """A part of a host's week: a clip, or nothing at all while its exporter does not answer."""

    start: int
    """Minute of the week."""
    clip: Clip | None
    offset: int = 0
    """Minute of the clip at which it begins."""
    zeroed: str = ""
    """A pattern of the counters that begin at zero with this part: of the exporter after its restart, of the NIC after that of the host."""


def week(parts: list[Part], minutes: int) -> dict[str, list[float]]:
    """The series of a host: `up`, and those of its clips with counters that go on from one to the next."""
    found: dict[str, list[float]] = {"up": []}
    totals: dict[str, float] = {}
    random = Random(len(parts))  # noqa: S311 - where counters begin
    for part, following in zip(parts, [*parts[1:], None], strict=True):
        length = (following.start if following else minutes) - part.start
        found["up"] += [float(part.clip is not None)] * length
        for name in totals:
            if part.zeroed and re.match(part.zeroed, name):
                totals[name] = 0.0
        for name, values in part.clip.series.items() if part.clip else ():
            series = found.setdefault(name, [GONE] * part.start)
            series += [GONE] * (part.start - len(series))
            own = _repeated(values, part.offset, length)
            if COUNTED.match(name):
                own = _going_on(own, totals.setdefault(name, float(random.randrange(10**6))))
                totals[name] = next((one for one in reversed(own) if one == one), totals[name])  # noqa: PLR0124 - not GONE
            series += own
    return {name: values + [GONE] * (minutes - len(values)) for name, values in found.items()}


def _repeated(values: list[float], offset: int, length: int) -> list[float]:
    found = values[offset : offset + length]
    return found + [found[-1]] * (length - len(found))


def _going_on(values: list[float], total: float) -> list[float]:
    """The growth of a counter on top of its total."""
    known = [one for one in values if one == one]  # noqa: PLR0124 - not GONE
    base = total - known[0] if known else 0.0
    return [one + base for one in values]


# ---- the fleet

LABEL = re.compile(r'(\w+)="([^"]*)"')
HEALTHY = ("healthy 1", "healthy 2", "healthy 3", "healthy 4")
DEVICES = re.compile(r'roce_\w+\{.*device="')


def written(
    fleet: Fleet, events: list[Event], clips: Mapping[str, Clip], begin: int, seed: int
) -> Iterator[bytes]:
    """Every series of the week, as Prometheus has it after its scrapes."""
    for place, (cluster, host) in enumerate(
        (one, host) for one, hosts in fleet.clusters.items() for host in hosts
    ):
        target = {"cluster": cluster, "job": "roce", "instance": f"{host}:10123"}
        parts = _parts(host, events, clips, fleet.minutes, Random(f"{seed}/{host}"))  # noqa: S311 - reproducible
        for name, values in week(parts, fleet.minutes).items():
            labels = _named(name) | target
            if "hostname" in labels:
                labels |= {"hostname": host, "mac": _mac(place)}
            yield regular(labels, begin, MINUTE, values)
    places = {
        host: place for place, host in enumerate(host for hosts in fleet.clusters.values() for host in hosts)
    }
    for switch, hosts in fleet.switches.items():
        cluster = next(one for one, listed in fleet.clusters.items() if hosts[0] in listed)
        target = {"cluster": cluster, "job": "roce-switches", "instance": switch}
        macs = [_mac(places[host]) for host in hosts]
        own = [one for one in events if one.switch == switch or {*one.hosts} & {*hosts}]
        for name, values in _switch(switch, hosts, macs, own, fleet.minutes).items():
            yield regular(_named(name) | target, begin, MINUTE, values)


def _named(series: str) -> dict[str, str]:
    return {"__name__": series.partition("{")[0], **dict(LABEL.findall(series))}


def _mac(place: int) -> str:
    return f"02:00:00:01:{place // 256:02x}:{place % 256:02x}"


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
    name = 'roce_owner_queue_pairs_in_error{device="mlx5_0",owner="slurm/4711.0"}'
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
