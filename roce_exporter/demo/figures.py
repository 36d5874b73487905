"""What the demo shows at one moment, frozen: the priorities, owners and switch ports of a scene, from rates and their history."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from roce_exporter.catalog import named, owners, storm
from roce_exporter.fastloop.pfc_storm import StormState
from roce_exporter.normalise.series import step
from roce_exporter.view.host_view import LabelValues, TimedSamples, moduli

FIRING = "firing"


@dataclass(frozen=True, slots=True)
class Address:
    """A page that the viewer can open."""

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class PauseHistory:
    """One direction of one priority."""

    shares: tuple[float | None, ...]
    """Share of the time paused, 0 to 1, oldest first; None: not measured."""
    state: str
    """The detector's state: `ok`, `suspect`, `storm`, `recovering`, `unknown`."""
    storms: int
    estimated: bool = False
    """Whether the shares are upper bounds, because the NIC counts frames and no time."""


@dataclass(frozen=True, slots=True)
class Priority:
    """One priority of one port, and the port's congestion control in packets per second; None: not counted."""

    device: str
    port: str
    netdev: str
    number: str
    up: bool | None
    receive: PauseHistory | None
    transmit: PauseHistory | None
    marked: float | None
    notified: float | None
    """CNPs sent."""
    reacted: float | None
    """CNPs handled."""


@dataclass(frozen=True, slots=True)
class StormEvent:
    """One PFC storm that the detector found."""

    device: str
    port: str
    netdev: str
    priority: str
    direction: str
    hint: str
    start: str
    """RFC 3339, in UTC."""
    duration: float | None = None
    """Seconds; None while it lasts."""
    reason: str = ""
    """How it ended."""

    @property
    def place(self) -> str:
        """Port, priority and direction in words."""
        return f"{self.device}/{self.port} ({self.netdev}) priority {self.priority} {self.direction}"

    @property
    def identity(self) -> tuple[str, str]:
        """The same for one storm while it lasts and after it."""
        return self.place, self.start


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert of Prometheus."""

    name: str
    severity: str
    state: str
    """`pending` or `firing`."""
    summary: str
    labels: tuple[tuple[str, str], ...] = ()
    """Sorted. They distinguish alerts of the same name."""

    @property
    def identity(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """The same for as long as it is the same alert."""
        return self.name, self.labels


@dataclass(frozen=True, slots=True)
class SwitchPriority:
    """One priority with PFC of one switch port."""

    port: str
    priority: str
    neighbor: str
    """Host and network device behind the port; empty without one."""
    shares: tuple[float | None, ...]
    """Share of the time for which received pause stopped the port, 0 to 1, oldest first; None: not measured."""
    watchdog: str
    """`ok`, `tripped`, `reports` (it only reports storms), `off`; empty if unknown."""
    trips: int | None
    marked: float | None
    """Packets per second that the queue marked with ECN."""
    headroom: float | None
    """Share of the headroom that was used at most, in the switch's periodic window."""

    @property
    def place(self) -> str:
        """Port, neighbour and priority in words."""
        return f"{self.port} ({self.neighbor or 'no neighbour'}) priority {self.priority}"


@dataclass(frozen=True, slots=True)
class ShownSwitch:
    """The switch at one moment."""

    name: str
    ports: tuple[SwitchPriority, ...]


@dataclass(frozen=True, slots=True)
class ShownOwner:
    """A pod, job or service that uses the host's RDMA devices; None: not counted."""

    owner: str
    command: str
    queue_pairs: int
    in_error: int
    """Queue pairs in state ERR."""
    cnps: float | None
    """CNPs received per second."""
    retries: float | None
    """Timeouts and NAKs per second after which the owner transmits again."""

    @property
    def place(self) -> str:
        """The owner in words."""
        return f"{self.owner} ({self.command})" if self.command else self.owner


@dataclass(frozen=True, slots=True)
class Scene:
    """The demo at one moment."""

    scenario: str
    description: str
    seconds: float
    """Since the demo began."""
    addresses: tuple[Address, ...] = ()
    priorities: tuple[Priority, ...] = ()
    storms: tuple[StormEvent, ...] = ()
    """Newest first."""
    alerts: tuple[Alert, ...] | None = None
    """None: no Prometheus evaluates the rules."""
    notes: tuple[str, ...] = ()
    """Messages for the viewer, oldest first: what is missing, what failed."""
    switch: ShownSwitch | None = None
    """None: there is no switch, or it does not answer."""
    owners: tuple[ShownOwner, ...] = ()
    """Those that suffer most first."""

    @property
    def firing(self) -> tuple[Alert, ...]:
        """The alerts that fire."""
        return tuple(alert for alert in self.alerts or () if alert.state == FIRING)


PORT_UP = "roce_port_up"
MARKED = "roce_ecn_marked_packets_total"
NOTIFIED = "roce_cnp_sent_total"
REACTED = "roce_cnp_handled_total"
PAUSED = {
    "receive": "roce_pfc_receive_pause_seconds_total",
    "transmit": "roce_pfc_transmit_pause_seconds_total",
}
STATE, STORMS = storm.STATE.name, storm.STORMS.name
ESTIMATED, REFRESH = storm.ESTIMATED.name, storm.REFRESH.name
PAUSES = frozenset({STORMS, ESTIMATED, *PAUSED.values()})
"""Metrics that are above 0 once a priority was paused."""
QUEUE_PAIRS, IN_ERROR, INFO = owners.QUEUE_PAIRS.name, owners.QUEUE_PAIRS_IN_ERROR.name, owners.OWNER_INFO
CNPS = ("roce_owner_flow_cnp_received_total", "roce_owner_cnp_handled_total")
"""CNPs for the owner's sender, as one driver or the other counts them."""
RETRIES = (
    "roce_owner_transport_ack_timeouts_total",
    "roce_owner_transport_packet_sequence_errors_total",
    "roce_owner_transport_implied_naks_total",
)
"""Reasons for which a sender transmits again."""
WANTED = frozenset(
    {PORT_UP, MARKED, NOTIFIED, REACTED, STATE, REFRESH, QUEUE_PAIRS, IN_ERROR, INFO.name}
    | PAUSES.union(CNPS, RETRIES)
)
"""Metrics of the exporter that the demo shows."""

QUEUES, NEIGHBORS = named.SWITCH_QUEUE_INFO, named.SWITCH_NEIGHBOR_INFO
SWITCH_PAUSED = "roce_switch_pfc_receive_pause_seconds_total"
ENABLED = "roce_switch_pfc_watchdog_enabled"
ACTS = "roce_switch_pfc_watchdog_acts"
TRIPPED = "roce_switch_pfc_watchdog_tripped"
TRIPS = "roce_switch_pfc_watchdog_trips_total"
SWITCH_MARKED = "roce_switch_queue_ecn_marked_packets_total"
HEADROOM = "roce_switch_buffer_headroom_bytes"
USED = "roce_switch_buffer_headroom_watermark_bytes"
SWITCH_WANTED = frozenset(
    {QUEUES.name, NEIGHBORS.name, SWITCH_PAUSED, ENABLED, ACTS, TRIPPED, TRIPS, SWITCH_MARKED, HEADROOM, USED}
)
"""Metrics of the switch that the demo shows."""

RATE_SECONDS = 2.0  # window of a rate of packets
SURVEY_SECONDS = 2.0
"""Between two surveys of owners in the demo. The default is a minute; a simulated driver is cheap to query."""
OWNER_SECONDS = 3 * SURVEY_SECONDS  # window of a rate of an owner: its counters change with each survey
REFRESHES = 2.0
"""Window of a share paused, in refreshes of the driver's copy: one of them may have been missed."""
SHORTEST_WINDOW = 0.25  # seconds; the least window of a share paused
KEPT_MOMENTS = 32  # at two a second they cover every window
KEPT_SHARES = 120  # per priority and direction: at two a second the last minute


@dataclass(slots=True)
class Moments:
    """The last moments of a host or switch, and the history of its shares paused."""

    _moments: deque[TimedSamples] = field(default_factory=lambda: deque(maxlen=KEPT_MOMENTS))
    _shares: dict[tuple[str, LabelValues], deque[float | None]] = field(default_factory=dict)

    def add(self, now: TimedSamples) -> None:
        """The next moment."""
        self._moments.append(now)

    def value(self, name: str, labels: LabelValues) -> float | None:
        """The value of a series now."""
        return self._moments[-1].value(name, labels)

    def series(self, name: str) -> Mapping[LabelValues, float]:
        """The series of a metric now."""
        return self._moments[-1].values.get(name, {})

    def rate(self, name: str, labels: LabelValues, seconds: float = RATE_SECONDS) -> float | None:
        """The rise per second since the newest moment that is at least `seconds` old, or the oldest.

        None where the series is missing or no time has passed.
        """
        now = self._moments[-1]
        old = [moment for moment in self._moments if moment.time <= now.time - seconds]
        before = old[-1] if old else self._moments[0]
        first, last = before.value(name, labels), now.value(name, labels)
        if first is None or last is None or now.time <= before.time:
            return None
        return step(first, last, moduli(name)) / (now.time - before.time)

    def shares(self, name: str, labels: LabelValues, seconds: float) -> tuple[float | None, ...]:
        """The share of the time that this counter of seconds shows, one per call, the newest last."""
        share = self.rate(name, labels, seconds)
        found = self._shares.setdefault((name, labels), deque(maxlen=KEPT_SHARES))
        # The time of a read is less exact than the counter, so a priority that is paused throughout may exceed 1.
        found.append(None if share is None else min(1.0, share))
        return tuple(found)


# Priorities of the host


def priorities(moments: Moments) -> tuple[Priority, ...]:
    """Per network device the priorities that were ever paused, or else its first: no port is left out. One call per moment."""
    paused = {labels[:4] for name in PAUSES for labels, value in moments.series(name).items() if value > 0}
    groups: dict[LabelValues, list[LabelValues]] = {}
    for place in dict.fromkeys(labels[:-1] for labels in moments.series(STATE)):
        groups.setdefault(place[:-1], []).append(place)
    return tuple(
        _priority(place, moments)
        for group in groups.values()
        for place in [place for place in group if place in paused] or group[:1]
    )


def _priority(place: LabelValues, moments: Moments) -> Priority:
    device, port, netdev, number = place
    up = moments.value(PORT_UP, (device, port))
    receive, transmit = (_pause(place, direction, moments) for direction in PAUSED)
    marked, notified, reacted = (moments.rate(name, (device, port)) for name in (MARKED, NOTIFIED, REACTED))
    known = None if up is None else up > 0
    return Priority(device, port, netdev, number, known, receive, transmit, marked, notified, reacted)


def _pause(place: LabelValues, direction: str, moments: Moments) -> PauseHistory | None:
    labels = (*place, direction)
    state = moments.value(STATE, labels)
    if state is None:
        return None
    window = max(SHORTEST_WINDOW, REFRESHES * (moments.value(REFRESH, place[:-1]) or 0.0))
    estimated = moments.value(ESTIMATED, labels) is not None
    counter = (ESTIMATED, labels) if estimated else (PAUSED[direction], place)
    shares = moments.shares(*counter, window)
    storms = moments.value(STORMS, labels) or 0.0
    return PauseHistory(shares, StormState(int(state)).name.lower(), int(storms), estimated)


def storm_events(documents: Iterable[Mapping[str, Any]]) -> tuple[StormEvent, ...]:
    """The sampler's events as a scene holds them, in the same order."""
    names = ("device", "port", "netdev", "priority", "direction", "hint", "start", "duration", "reason")
    return tuple(StormEvent(*(found[name] for name in names)) for found in documents)


# Owners


def shown_owners(moments: Moments) -> tuple[ShownOwner, ...]:
    """Every owner of the host's devices together, those that suffer most first."""
    commands = {}
    for labels in moments.series(INFO.name):
        known = dict(zip(INFO.labels, labels, strict=True))
        commands[known["owner"]] = known["command"]
    shown = []
    for owner in dict.fromkeys(labels[1] for labels in moments.series(IN_ERROR) if labels[0]):
        cnps = (sum(found) for name in CNPS if (found := _rates(moments, name, owner)))
        retries = [rate for name in RETRIES for rate in _rates(moments, name, owner)]
        shown.append(
            ShownOwner(
                owner,
                commands.get(owner, ""),
                _total(moments, QUEUE_PAIRS, owner),
                _total(moments, IN_ERROR, owner),
                max(cnps, default=None),  # a driver that counts CNPs for ports has 0 under the second name
                sum(retries) if retries else None,
            )
        )
    return tuple(sorted(shown, key=suffering))


def suffering(owner: ShownOwner) -> tuple[float, float, float, str]:
    """A key that sorts owners: by queue pairs in error, retries, CNPs, and then by name."""
    return -owner.in_error, -(owner.retries or 0.0), -(owner.cnps or 0.0), owner.owner


def _of_owner(moments: Moments, name: str, owner: str) -> list[LabelValues]:
    return [labels for labels in moments.series(name) if labels[0] and labels[1] == owner]


def _rates(moments: Moments, name: str, owner: str) -> list[float]:
    """The rise per second on each device that has the counter at both moments."""
    rates = [moments.rate(name, labels, OWNER_SECONDS) for labels in _of_owner(moments, name, owner)]
    return [rate for rate in rates if rate is not None]


def _total(moments: Moments, name: str, owner: str) -> int:
    return int(sum(moments.series(name)[labels] for labels in _of_owner(moments, name, owner)))


# Ports of the switch


def switch_ports(moments: Moments) -> tuple[SwitchPriority, ...]:
    """Each priority with PFC of each port, in the order of the switch. One call per moment."""
    neighbors = {}
    for labels in moments.series(NEIGHBORS.name):
        known = dict(zip(NEIGHBORS.labels, labels, strict=True))
        # A port identifier that is a MAC address says less than its description.
        by_mac = known["port_id_kind"] == "mac" and known["neighbor_description"]
        netdev = known["neighbor_description" if by_mac else "neighbor_port"]
        neighbors[known["port"]] = f"{known['neighbor']} {netdev}"
    found = []
    for device, port, priority, queue, group in moments.series(QUEUES.name):
        of_queue = (device, port, queue)
        trips = moments.value(TRIPS, of_queue)
        used = moments.value(USED, (device, port, group, "periodic"))
        size = moments.value(HEADROOM, (device, port, group))
        found.append(
            SwitchPriority(
                port,
                priority,
                neighbors.get(port, ""),
                moments.shares(SWITCH_PAUSED, (device, port, priority), RATE_SECONDS),
                _watchdog(of_queue, moments),
                None if trips is None else int(trips),
                moments.rate(SWITCH_MARKED, of_queue),
                used / size if used is not None and size else None,
            )
        )
    return tuple(found)


def _watchdog(queue: LabelValues, moments: Moments) -> str:
    """`tripped`, `ok`, `reports` (it only reports storms), `off`, or empty if the switch does not report it."""
    if moments.value(TRIPPED, queue):
        return "tripped"
    if not (enabled := moments.value(ENABLED, queue)):
        return "" if enabled is None else "off"
    acts = moments.value(ACTS, queue)
    return "ok" if acts is None or acts else "reports"
