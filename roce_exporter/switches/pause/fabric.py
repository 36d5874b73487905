"""Which port of which switch or host is at the other end of each switch port.

Neighbours are what switches report from LLDP (IEEE 802.1AB), or links from the configuration file. A neighbour is a switch if
its system name is that of a switch of the configuration; else it is a host, unless its port has a name that only switches use.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from roce_exporter.catalog.named import (
    SWITCH_NEIGHBOR_INFO,
    SWITCH_PORT_INFO,
    SWITCH_QUEUE_INFO,
    SWITCH_SOURCE_UP,
)
from roce_exporter.switches.switch_view import SwitchView, ViewValues, natural

RECEIVE_FRAMES = "roce_switch_pfc_receive_frames_total"
TRANSMIT_FRAMES = "roce_switch_pfc_transmit_frames_total"
PAUSE_SECONDS = "roce_switch_pfc_receive_pause_seconds_total"
ESTIMATED_SECONDS = "roce_switch_pfc_receive_pause_estimated_seconds_total"
QUEUE_PAUSED = "roce_switch_queue_paused"
TRIPPED = "roce_switch_pfc_watchdog_tripped"
OCCUPANCY = "roce_switch_queue_occupancy_bytes"
WATERMARK = "roce_switch_queue_watermark_bytes"
PAUSE_THRESHOLD = "roce_switch_buffer_pause_threshold_bytes"
ECN_MAXIMUM = "roce_switch_config_ecn_maximum_bytes"
ECN_MARKS = "roce_switch_queue_ecn_marked_packets_total"

RECENT = "periodic"
"""The window of a watermark that the switch itself restarts every few minutes. The others can be days old."""

LEAST_SHARE = 0.001
"""Less pause than one millisecond per second slows nothing down, and is not followed."""

SENT, SPEED = "roce_switch_phy_transmit_bytes_total", "roce_switch_link_speed_bytes_per_second"
AT_SPEED = 0.95
"""From this part of its speed on a port carries all that its link can."""
FULL = 0.5
"""From this part of the pause threshold on a queue counts as full.

A port that sends pause has as many bytes as its threshold in the switch; they can lie in more than one queue.
"""

ROWS = frozenset(
    {
        *(
            RECEIVE_FRAMES,
            TRANSMIT_FRAMES,
            PAUSE_SECONDS,
            ESTIMATED_SECONDS,
            QUEUE_PAUSED,
            TRIPPED,
            SENT,
            SPEED,
        ),
        *(OCCUPANCY, WATERMARK, PAUSE_THRESHOLD, ECN_MAXIMUM, ECN_MARKS),
        *(one.name for one in (SWITCH_NEIGHBOR_INFO, SWITCH_PORT_INFO, SWITCH_QUEUE_INFO, SWITCH_SOURCE_UP)),
    }
)
"""What the tree reads of a switch."""
HOST, SWITCH, MAC = "host", "switch", "mac"
PORT_UNKNOWN, AWAY, NOT_CONFIGURED, NO_NEIGHBOR = "port_unknown", "away", "not_configured", "no_neighbor"
"""Switches of the configuration of which the port cannot be identified, or that have not answered; a switch, by the name of its port, that is not in it."""
PortId = tuple[str, str]
"""Switch and port."""
SWITCH_PORT_NAME = re.compile(
    r"(ethernet|eth) ?\d+(/\d+)+|ethernet\d+|swp\d+(s\d+)?|etp\d+[a-z]?|(et|xe|ge|mge)-\d+/\d+/\d+(:\d+)?"
    r"|(hundredgig|fortygig|fourhundredgig|tengig)\w*[\d/]+",
    re.IGNORECASE | re.ASCII,
)
"""Ports of Cisco, Arista, SONiC, Cumulus and Junos. Linux hosts have eth0, ens1f0np0 or enp23s0."""
WITH_PORT = (SWITCH_PORT_INFO.name, SWITCH_NEIGHBOR_INFO.name, RECEIVE_FRAMES, TRANSMIT_FRAMES)
"""Rows whose first label after `device` is a port. If one source of a switch fails, the others still name its ports."""
LLDPAD = re.compile(r".* as (\S+)", re.ASCII)
"""lldpad announces the MAC address as port id and "Interface 28 as enp154s0d22" as description."""


class PausePlace(NamedTuple):
    """One priority of one port of one switch."""

    switch: str
    port: str
    priority: str

    def __str__(self) -> str:
        """As in all sentences: `leaf1 Ethernet12`."""
        return f"{self.switch} {self.port}"


def place_order(place: PausePlace) -> tuple[object, ...]:
    """A key that sorts places as people read them."""
    return natural(place.switch), natural(place.port), natural(place.priority)


@dataclass(frozen=True, slots=True)
class QueueFill:
    """How full a queue is."""

    held: float | None = None
    """Bytes: the most of now and of the last few minutes."""
    now: float | None = None
    """Bytes at the moment of the answer."""
    recent: bool = False
    """Whether `held` covers the last few minutes, and not only the moment of the answer."""
    full_at: float | None = None
    """Bytes from which on the queue counts as full."""
    limit: str = ""
    """What `full_at` is, in words."""
    marks: float | None = None
    """Packets per second in which the queue sets the ECN mark."""
    busy: float | None = None
    """The part of the port's speed at which it transmits."""

    @property
    def is_full(self) -> bool | None:
        """Whether the queue is full; None if the switch does not report enough.

        A watermark says that the queue was full within minutes: where the switch also reports what is in the queue or what it marks,
        one of them must say so now. Where nothing of this is reported, a port that transmits at its speed counts as full. Marks show a filled queue only where its fill level is known for no more than the moment of the answer.
        """
        if self.held is not None and self.full_at is not None and self.held >= self.full_at:
            is_empty = self.now is not None and self.now < self.full_at and not self.marks
            return not (self.recent and is_empty)
        if not self.recent and self.marks is not None and self.marks > 0:
            return True
        known = (self.held is not None and self.full_at is not None) or self.marks is not None
        if not known and self.busy is not None:
            return self.busy >= AT_SPEED
        return False if known else None


@dataclass(frozen=True, slots=True)
class PortPause:
    """One priority of one port."""

    receive_share: float | None = None
    """The part of the time for which the neighbour paused this queue, from 0 to 1."""
    estimated: bool = False
    """Whether `receive_share` is an estimate by the switch's software."""
    receive_frames: float | None = None
    """Pause frames per second from the neighbour."""
    transmit_frames: float | None = None
    """Pause frames per second to the neighbour."""
    queue_paused: bool | None = None
    tripped: bool | None = None
    fill: QueueFill = QueueFill()

    @property
    def is_paused(self) -> bool | None:
        """Whether the neighbour pauses this queue now; None if the switch does not report it."""
        if self.queue_paused or self.tripped:
            return True
        if self.receive_share is not None:
            return self.receive_share >= LEAST_SHARE
        if self.receive_frames is not None:
            return self.receive_frames > 0
        return self.queue_paused

    @property
    def transmits(self) -> bool | None:
        """Whether the switch pauses the neighbour; None if the switch does not report it, or answered only once."""
        return None if self.transmit_frames is None else self.transmit_frames > 0


def port_pauses(switch: str, values: ViewValues) -> dict[PausePlace, PortPause]:
    """All priorities of all ports of a switch on which it reports anything about pause, in natural order."""
    queues = {
        (port, priority): (queue, group)
        for port, priority, queue, group in values.labels(SWITCH_QUEUE_INFO.name)
    }
    thresholds: dict[str, float] = {}
    """By priority the lowest level at which a port of the switch sends pause."""
    for (port, priority), (_, group) in queues.items():
        if level := values.value(PAUSE_THRESHOLD, port, group):
            thresholds[priority] = min(level, thresholds.get(priority, level))
    found = set(queues)
    for row in (RECEIVE_FRAMES, TRANSMIT_FRAMES, PAUSE_SECONDS, ESTIMATED_SECONDS):
        found |= {(port, priority) for port, priority in values.labels(row)}
    places = sorted((PausePlace(switch, *labels) for labels in found), key=place_order)
    return {
        place: _port_pause(values, place, queues.get(place[1:], ("", ""))[0], thresholds.get(place.priority))
        for place in places
    }


def _port_pause(values: ViewValues, place: PausePlace, queue: str, threshold: float | None) -> PortPause:
    port, here = place.port, place[1:]
    measured, estimated = values.rate(PAUSE_SECONDS, *here), values.rate(ESTIMATED_SECONDS, *here)
    share = estimated if measured is None else measured
    now, recent = values.value(OCCUPANCY, port, queue), values.value(WATERMARK, port, queue, RECENT)
    limits = [] if threshold is None else [(threshold * FULL, "half of the pause threshold")]
    if maximum := values.value(ECN_MAXIMUM, port, queue):
        # The threshold of a dynamic buffer is the highest that it can have, and so can be far above this.
        limits.append((maximum, "the ECN maximum"))
    full_at, limit = min(limits, default=(None, ""))
    sent, speed = values.rate(SENT, port), values.value(SPEED, port)
    return PortPause(
        receive_share=None if share is None else min(1.0, share),
        estimated=measured is None and estimated is not None,
        receive_frames=values.rate(RECEIVE_FRAMES, *here),
        transmit_frames=values.rate(TRANSMIT_FRAMES, *here),
        queue_paused=values.flag(QUEUE_PAUSED, port, queue),
        tripped=values.flag(TRIPPED, port, queue),
        fill=QueueFill(
            held=max((one for one in (now, recent) if one is not None), default=None),
            now=now,
            recent=recent is not None,
            full_at=full_at,
            limit=limit,
            marks=values.rate(ECN_MARKS, port, queue),
            busy=sent / speed if sent is not None and speed else None,
        ),
    )


@dataclass(frozen=True, slots=True)
class FabricLink:
    """One switch port and what is at its other end."""

    kind: str
    neighbor: str = ""
    """The system name of the neighbour, or its chassis id if it announces no name; empty if unknown."""
    neighbor_port: str = ""
    """The name of the neighbour's port; its MAC address if it announces nothing else."""
    peer: PortId | None = None
    """Switch and port at the other end, if both are known."""
    names: tuple[str, ...] = ()
    """All that the neighbour announces about its port: name, description, MAC address."""

    def __str__(self) -> str:
        """As in all sentences: `gpu-007 eth2`."""
        return f"{self.neighbor} {self.neighbor_port}".strip() or "an unknown neighbour"


UNKNOWN_LINK = FabricLink(NO_NEIGHBOR)


class _Announced(NamedTuple):
    """The labels of one series of `SWITCH_NEIGHBOR_INFO`."""

    port: str
    neighbor: str
    chassis: str
    neighbor_port: str
    description: str
    mac: str
    kind: str
    source: str

    @property
    def netdev(self) -> str:
        """What the port of a host is called."""
        if self.kind != MAC:
            return self.neighbor_port or self.description
        if found := LLDPAD.fullmatch(self.description):
            return found[1]
        plain = self.description and " " not in self.description
        return self.description if plain else self.mac or self.neighbor_port


class _Names(NamedTuple):
    """How names that neighbours announce are resolved."""

    switches: Mapping[str, str]
    """Switch by system name in lower case, with and without its domain."""
    ports: Mapping[str, Mapping[str, str]]
    """Per switch its ports by every name in a canonical form; only unambiguous names."""

    def switch(self, announced: _Announced) -> str | None:
        """The switch of the configuration that announces itself."""
        name = announced.neighbor.lower()
        return self.switches.get(name) or self.switches.get(name.partition(".")[0])

    def order(self, announced: _Announced) -> tuple[object, ...]:
        """NIC firmware and the host's own agent can both announce themselves on one port: the least one counts."""
        return (
            self.switch(announced) is None,
            not announced.neighbor,
            announced.kind == MAC,
            announced.source != "lldp",
            natural(announced.neighbor),
            natural(announced.neighbor_port),
        )

    def link(self, announced: _Announced) -> FabricLink:
        """The link to this neighbour."""
        switch = self.switch(announced)
        names = tuple(filter(None, (announced.neighbor_port, announced.description, announced.mac)))
        if switch is None:
            switch_like = announced.source == "lldp" and SWITCH_PORT_NAME.fullmatch(announced.neighbor_port)
            kind = NOT_CONFIGURED if switch_like else HOST
            return FabricLink(kind, announced.neighbor or announced.chassis, announced.netdev, None, names)
        ports = self.ports[switch]
        port = next((ports[one] for name in names if (one := _canonical(name)) in ports), None)
        if port is not None:
            return FabricLink(SWITCH, switch, port, (switch, port), names)
        return FabricLink(PORT_UNKNOWN if ports else AWAY, switch, announced.neighbor_port, None, names)


def fabric_links(views: Sequence[SwitchView], values: Mapping[str, ViewValues]) -> dict[PortId, FabricLink]:
    """The link of every switch port with a neighbour.

    Links of which one side names the other's port, or has a neighbour at all, are completed by what the other side reports.
    """
    names = _Names(
        _unique(
            (name, view.device)
            for view in views
            for name in {view.device.lower(), view.device.partition(".")[0].lower()}
        ),
        {view.device: _port_names(values[view.device]) for view in views},
    )
    links: dict[PortId, FabricLink] = {}
    for switch, of_switch in values.items():
        announced: dict[str, list[_Announced]] = defaultdict(list)
        for labels in of_switch.labels(SWITCH_NEIGHBOR_INFO.name):
            announced[labels[0]].append(_Announced(*labels))
        for port, neighbors in announced.items():
            least = neighbors[0] if len(neighbors) == 1 else min(neighbors, key=names.order)
            links[switch, port] = names.link(least)
    back: dict[PortId, list[PortId]] = defaultdict(list)
    for here, link in links.items():
        if link.peer is not None:
            back[link.peer].append(here)
    for here, ends in back.items():
        known = links.get(here, UNKNOWN_LINK)
        if known.kind in (NO_NEIGHBOR, PORT_UNKNOWN):
            fitting = [end for end in ends if known.kind == NO_NEIGHBOR or end[0] == known.neighbor]
            if len(fitting) == 1:
                links[here] = FabricLink(SWITCH, *fitting[0], fitting[0], known.names)
    return links


def is_named(name: str, wanted: str) -> bool:
    """Whether a system name is the wanted one; a domain may be missing on one side."""
    if "." in name and "." in wanted:
        return name.lower() == wanted.lower()
    return name.partition(".")[0].lower() == wanted.partition(".")[0].lower()


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, set[str]] = defaultdict(set)
    for name, meaning in pairs:
        if name:
            found[name].add(meaning)
    return {name: next(iter(meanings)) for name, meanings in found.items() if len(meanings) == 1}


def _port_names(values: ViewValues) -> dict[str, str]:
    names = _unique((_canonical(alias), port) for port, alias, _ in values.labels(SWITCH_PORT_INFO.name))
    # A port's own name is never ambiguous, even if another port has it as its alias.
    return names | {_canonical(labels[0]): labels[0] for row in WITH_PORT for labels in values.labels(row)}


@lru_cache(16384)
def _canonical(name: str) -> str:
    return name.lower().replace(" ", "").replace("ethernet", "eth")
