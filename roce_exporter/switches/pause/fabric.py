"""Which port of which switch or host is at the other end of each switch port.

Neighbours are what switches report from LLDP (IEEE 802.1AB), or links from the configuration file. A neighbour is a switch if
its system name is that of a switch of the configuration; else it is a host, unless its port has a name that only switches use.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import chain, compress
from math import nan
from operator import ne
from typing import Any, NamedTuple

from roce_exporter.catalog.named import (
    SWITCH_NEIGHBOR_INFO,
    SWITCH_PORT_INFO,
    SWITCH_QUEUE_INFO,
    SWITCH_SOURCE_UP,
)
from roce_exporter.normalise.series import Picker, Series, picker
from roce_exporter.switches.interpretation import SeriesTable
from roce_exporter.switches.switch_view import RowPlaces, SwitchView, natural, places_by_row

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

COUNTERS = (RECEIVE_FRAMES, PAUSE_SECONDS, ESTIMATED_SECONDS, TRANSMIT_FRAMES, ECN_MARKS, SENT)
LEVELS = (QUEUE_PAUSED, TRIPPED, OCCUPANCY, WATERMARK, SPEED, ECN_MAXIMUM, PAUSE_THRESHOLD)
OF_PRIORITY = COUNTERS[:4]
"""Rows whose labels after `device` are a port and a priority."""
FACTS = tuple(one.name for one in (SWITCH_NEIGHBOR_INFO, SWITCH_PORT_INFO, SWITCH_QUEUE_INFO))
ROWS = (*COUNTERS, *LEVELS, *FACTS, SWITCH_SOURCE_UP.name)
"""What the tree reads of a switch."""
NOWHERE = (*(-1 for _ in COUNTERS), *(-2 for _ in LEVELS))
"""Where the values are of series that a switch does not have: behind all others."""
HOST, SWITCH, MAC = "host", "switch", "mac"
PORT_UNKNOWN, AWAY, NOT_CONFIGURED, NO_NEIGHBOR = "port_unknown", "away", "not_configured", "no_neighbor"
"""Switches of the configuration of which the port cannot be identified, or that have not answered; a switch, by the name of its port, that is not in it."""
PortId = tuple[str, str]
"""Switch and port."""
Column = tuple[Any, ...]
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


class QueueFill(NamedTuple):
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


class PortPause(NamedTuple):
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


NO_PAUSE = PortPause()


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


@dataclass(frozen=True, slots=True, eq=False)
class SwitchPlan:
    """What the series of a switch say whatever their values are, and where the values are."""

    device: str
    places: Mapping[PausePlace, int]
    """All priorities of all ports of which it reports anything about pause, numbered in natural order."""
    priorities: Column
    """The priorities of the places."""
    columns: tuple[Picker, ...]
    """The values of all places, by row of `COUNTERS` and `LEVELS`."""
    announced: Mapping[str, Sequence[_Announced]]
    """The neighbours of each port."""
    ports: Mapping[str, str]
    """Its ports by every name in a canonical form; only unambiguous names."""
    has_queues: bool
    sources: tuple[tuple[str, int], ...]
    """Where it says whether a source could be used."""


def switch_plan(view: SwitchView) -> SwitchPlan:
    """The plan of the last answer; kept with its series, as only values differ from tree to tree."""
    device, series = view.device, view.samples.series
    if not isinstance(series, SeriesTable):
        return _plan_of(device, series) if series else _no_answer(device)
    if not isinstance(series.derived, SwitchPlan) or series.derived.device != device:
        series.derived = _plan_of(device, series)
    return series.derived


def _plan_of(device: str, series: Sequence[Series]) -> SwitchPlan:
    found = places_by_row(series, ROWS)
    neighbors, aliases, queues = (found[row] for row in FACTS)
    numbers = {(port, priority): both for port, priority, *both in queues}
    known = {*numbers, *((port, priority) for row in OF_PRIORITY for port, priority in found[row])}
    places = [PausePlace(device, *one) for one in sorted(known, key=lambda one: [*map(natural, one)])]
    positions = [_positions(found, one, *numbers.get(one[1:], ())) for one in places]
    announced: dict[str, list[_Announced]] = defaultdict(list)
    for one in neighbors:
        announced[one[0]].append(_Announced(*one))
    names = _unique((_canonical(alias), port) for port, alias, _ in aliases)
    # A port's own name is never ambiguous, even if another port has it as its alias.
    names |= {_canonical(one[0]): one[0] for row in WITH_PORT for one in found[row]}
    return SwitchPlan(
        device,
        {place: number for number, place in enumerate(places)},
        tuple([place.priority for place in places]),
        tuple(_column([one[number] for one in positions], none) for number, none in enumerate(NOWHERE)),
        announced,
        names,
        bool(queues),
        tuple((source, at) for (source,), at in found[SWITCH_SOURCE_UP.name].items()),
    )


def _column(positions: list[int], none: int) -> Picker:
    """The values at these positions; of a row that the switch does not have, nothing is picked."""
    nothing = (None if none == NOWHERE[-1] else -1.0,) * len(positions)
    return picker(positions) if any(one != none for one in positions) else lambda _: nothing


_no_answer = lru_cache(4096)(partial(_plan_of, series=()))


def _positions(found: RowPlaces, place: PausePlace, queue: str = "", *group: str) -> list[int]:
    port = place.port
    labels = {
        **dict.fromkeys(OF_PRIORITY, place[1:]),
        **dict.fromkeys((SENT, SPEED), (port,)),
        WATERMARK: (port, queue, RECENT),
        PAUSE_THRESHOLD: (port, *group),
    }
    rows = zip((*COUNTERS, *LEVELS), NOWHERE, strict=True)
    return [found[row].get(labels.get(row, (port, queue)), none) for row, none in rows]


def _earlier(view: SwitchView) -> array[float]:
    """The values of the answer before, in the order of the last one; NaN is missing."""
    series, before = view.samples.series, view.before
    if before is None or view.seconds <= 0:
        numbers = array("d", [nan]) * len(series)
    elif before.series is series:
        numbers = before.numbers
    else:
        known = dict(zip(before.series, before.numbers, strict=True))
        numbers = array("d", [known.get(one, nan) for one in series])
    return numbers + array("d", (nan, -1.0))


def _rates(now: Sequence[Any], before: Sequence[Any], seconds: float) -> list[float | None]:
    """The increases per second; None where one of both is missing, or where the counter started again."""
    # `was` is a float, and so the difference one of floats: a large counter that does not move does not seem to fall.
    return [
        None if one is None or one < 0 or not (rise := one - was) >= 0 else rise / seconds
        for one, was in zip(now, before, strict=True)
    ]


class SwitchPauses:
    """The pause of one switch. Columns are compared, and objects made only of what is not calm: in most fabrics little."""

    def __init__(self, view: SwitchView, made: dict[PausePlace, PortPause]) -> None:
        self.plan = plan = switch_plan(view)
        self._seconds, values, earlier = view.seconds, (*view.samples.values, None, -1.0), _earlier(view)
        states: list[Column]
        now, before = ([pick(one) for pick in plan.columns[: len(COUNTERS)]] for one in (values, earlier))
        *states, maxima, limits = [pick(values) for pick in plan.columns[len(COUNTERS) :]]
        self._columns: list[Column] = [*now, *before, *states, *_full_at(plan.priorities, limits, maxima)]
        self._made = made
        self.may_be_paused = now[:3] != before[:3] or any(states[0]) or any(states[1])
        sent = _rates(now[3], before[3], self._seconds)
        self.pausing = {place: rate for place, rate in zip(plan.places, sent, strict=True) if rate}
        """Pause frames per second to the neighbour, of places that send any."""

    def pause(self, place: PausePlace) -> PortPause:
        """The pause of a place; nothing is known of one that the switch does not have."""
        found = self._made.get(place)
        if found is None:
            if (number := self.plan.places.get(place)) is None:
                return NO_PAUSE
            row = [column[number] for column in self._columns]
            found = self._made[place] = _port_pause(row, self._seconds)
        return found

    @cached_property
    def candidates(self) -> dict[str, tuple[PausePlace, ...]]:
        """By priority the queues that are paused or full, the most paused first, then in natural order."""
        found: dict[str, list[tuple[tuple[float, ...], PausePlace]]] = {}
        size = len(COUNTERS)
        now, before, states = self._columns[:size], self._columns[size : 2 * size], self._columns[2 * size :]
        fill = zip(
            *states[2:4], states[5], now[4], before[4], strict=True
        )  # marks or `held` say if a full queue still is
        may_be_full = [
            None in (most, level)
            or (held or 0) >= level
            or (most >= level and (held is None or marks != marked))
            for held, most, level, marks, marked in fill
        ]
        moves = [map(ne, *both) for both in zip(now[:3], before[:3], strict=True) if both[0] != both[1]]
        for place in {
            *chain(*(compress(self.plan.places, one) for one in (may_be_full, *moves, *states[:2])))
        }:
            pause = self.pause(place)
            if pause.is_paused or pause.fill.is_full:
                amounts = (pause.receive_share, pause.receive_frames, pause.fill.held)
                # Places of equal pause keep their order.
                order = (not pause.is_paused, *[-(one or 0) for one in amounts], self.plan.places[place])
                found.setdefault(place.priority, []).append((order, place))
        return {key: tuple([place for _, place in sorted(places)]) for key, places in found.items()}

    @property
    def estimated(self) -> list[str]:
        """The ports whose pause time the switch estimates."""
        if {*self._columns[2]} <= {None, -1}:
            return []
        return [place.port for place in self.plan.places if self.pause(place).estimated]

    def fullest(self, priority: str) -> tuple[PausePlace, PortPause] | None:
        """The fullest queue of a priority; None if it is not read how full any of them is."""
        found = [(place, self.pause(place)) for place in self.plan.places if place.priority == priority]
        held = [one for one in found if one[1].fill.held is not None]
        return max(held, key=lambda one: one[1].fill.held or 0, default=None)


def _port_pause(row: Sequence[Any], seconds: float) -> PortPause:
    parts = row[: (size := len(COUNTERS))], row[size : 2 * size], seconds
    paused, tripped, now, watermark, speed, full_at, limit = row[2 * size :]
    received, measured, estimated, transmitted, marks, sent = _rates(*parts)
    share = estimated if measured is None else measured
    held = watermark if now is None or (watermark is not None and watermark > now) else now
    busy = sent / speed if sent is not None and speed else None
    return PortPause(
        None if share is None else min(1.0, share),
        measured is None and estimated is not None,
        received,
        transmitted,
        None if paused is None else bool(paused),
        None if tripped is None else bool(tripped),
        QueueFill(held, now, watermark is not None, full_at, limit, marks, busy),
    )


@lru_cache(16)
def _full_at(priorities: Column, limits: Column, maxima: Column) -> tuple[Column, Column]:
    """From how many bytes on each queue is full, and what that is in words. Most switches have the settings of others."""
    lowest: dict[str, float] = {}  # by priority, at which a port of the switch sends pause
    for priority, limit in zip(priorities, limits, strict=True):
        if limit:
            lowest[priority] = min(limit, lowest.get(priority, limit))
    found: list[tuple[float | None, str]] = []
    for priority, maximum in zip(priorities, maxima, strict=True):
        bounds = [(lowest[priority] * FULL, "half of the pause threshold")] if priority in lowest else []
        if maximum:
            # The threshold of a dynamic buffer is the highest that it can have, and so can be far above this.
            bounds.append((maximum, "the ECN maximum"))
        found.append(min(bounds, default=(None, "")))
    return tuple([level for level, _ in found]), tuple([words for _, words in found])


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


@lru_cache(1)
def fabric_links(plans: tuple[SwitchPlan, ...]) -> Mapping[PortId, FabricLink]:
    """The link of every switch port with a neighbour.

    Links of which one side names the other's port, or has a neighbour at all, are completed by what the other side reports.
    """
    devices = [(one.device.lower(), one.device) for one in plans]
    devices += [(name.partition(".")[0], device) for name, device in devices]
    names = _Names(_unique(devices), {one.device: one.ports for one in plans})
    links = {
        (one.device, port): names.link(found[0] if len(found) == 1 else min(found, key=names.order))
        for one in plans
        for port, found in one.announced.items()
    }
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


@lru_cache(16384)
def _canonical(name: str) -> str:
    return name.lower().replace(" ", "").replace("ethernet", "eth")
