"""The series of a fleet in a drawn week: each host's from its clips, and those of the switches at the other ends, which are made from the events."""

from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING

from remote_write import regular
from week_hosts import GONE, LEAD, MINUTE, RESTARTS, TAIL, Clip, Part, week
from week_plan import KINDS, VICTIM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from week_plan import Event, Fleet

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
