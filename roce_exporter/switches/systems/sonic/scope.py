"""The priorities with PFC per port, the queue and the priority group behind each, and the settings of the objects that are shown.

SONiC: PORT_QOS_MAP names the priorities (`pfc_enable`) and the maps from priority to queue and to group; without a map, the
queue and the group have the number of the priority. The watchdog always takes the queue with the number of the priority
(sonic-swss, pfcwdorch), whatever the map says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from roce_exporter.catalog.named import SWITCH_QUEUE_INFO
from roce_exporter.switches.readings import RawNumber, SwitchFact, SwitchReading, label_text
from roce_exporter.switches.reply_values import fact, is_absent, number, numbers, of_port, word
from roce_exporter.switches.systems.sonic import tables as t
from roce_exporter.switches.systems.sonic.tables import Fields, SonicGroup, SonicQueue, SonicTables

PRIORITIES = range(8)
USUAL = (3, 4)
"""The lossless priorities of SONiC's default configuration, of which RoCE uses the first one."""
MAPS = {
    "MAP_PFC_PRIORITY_TO_QUEUE": "pfc_to_queue_map",
    "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": "pfc_to_pg_map",
}
"""The tables with the queue and the priority group of each priority, and the settings of a port that name a row of them."""
PREFIXES = {"MULTICAST": "MC", "UNICAST_VOQ": "VOQ", t.EVERY_TYPE: "ALL"}
LIST = re.compile(r"[0-7](,[0-7])*", re.ASCII)
ACTS = {"drop": 1, "forward": 1, "alert": 0}

MARKS = {
    **dict.fromkeys(("ecn_green", "ecn_green_yellow", "ecn_green_red", "ecn_all"), 1),
    **dict.fromkeys(("ecn_none", "ecn_yellow", "ecn_red", "ecn_yellow_red"), 0),
}
"""Whether green packets are marked: all packets are green unless a policer colours them. The thresholds are green's too."""

ECN_NUMBERS = ("green_min_threshold", "green_max_threshold", "green_drop_probability")
EXPONENT = re.compile(r"-?[0-9]{1,2}", re.ASCII)


class PortLossless(NamedTuple):
    """The priorities of one port that have PFC."""

    queues: Mapping[int, int]
    """The queue of each priority with PFC."""
    groups: Mapping[int, int]
    """The priority group of each priority with PFC."""
    watched: frozenset[int]
    """The priorities that the watchdog watches if it is configured on the port: `pfcwd_sw_enable`, else all of them."""


@dataclass(frozen=True, slots=True)
class Lossless:
    """The lossless part of one namespace."""

    ports: Mapping[str, PortLossless]
    """A port that is absent has no priority with PFC, or it is not known which."""
    unclear: Mapping[str, str] = field(default_factory=dict)
    """Per port whose row does not say which priorities have PFC, why not: one line."""
    usual: Mapping[str, PortLossless] = field(default_factory=dict)
    """Where no port has PFC: the priorities that RoCE usually has on every port; ECN may mark their queues."""

    @property
    def shown(self) -> Mapping[str, PortLossless]:
        """What is shown of each port."""
        return self.ports or self.usual

    @property
    def used_queues(self) -> frozenset[int]:
        """The queues of these priorities on any port."""
        return frozenset(queue for port in self.shown.values() for queue in port.queues.values())

    @property
    def priorities(self) -> frozenset[int]:
        """The priorities with PFC on any port: on other ports, pause of these is a mismatch worth a metric."""
        return frozenset(priority for port in self.shown.values() for priority in port.queues)


def lossless_of(rows: t.SonicRows) -> Lossless:
    """The lossless part as it is configured."""
    ports, unclear = {}, {}
    for port, fields in rows.qos.items():
        enabled = _listed(fields.get("pfc_enable", ""))
        if enabled is None:
            unclear[port] = f"PORT_QOS_MAP|{port}: pfc_enable is not a list of priorities"
        elif enabled:
            watched = _listed(fields.get("pfcwd_sw_enable", ""))
            ports[port] = _mapped(rows, fields, enabled, enabled & watched if watched else enabled)
    every = {*rows.ports, *rows.qos} if not ports and not unclear else ()
    usual = {port: _mapped(rows, rows.qos.get(port, {}), USUAL, frozenset()) for port in every}
    return Lossless(ports, unclear, usual)


def _mapped(
    rows: t.SonicRows, fields: Fields, priorities: Iterable[int], watched: frozenset[int]
) -> PortLossless:
    """The queue and the group of each priority, by the maps of a port's row; without a map they have its number."""
    parts: list[dict[int, int]] = []
    for table, setting in MAPS.items():
        row = rows.get(f"{table}|{t.reference(fields.get(setting))}")
        found = {priority: number(row.get(str(priority))) for priority in sorted(priorities)}
        parts.append(
            {
                one: value if isinstance(value, int) and value <= 1 << 8 else one
                for one, value in found.items()
            }
        )
    return PortLossless(parts[0], parts[1], watched)


def named_maps(rows: t.SonicRows) -> set[str]:
    """Keys of the maps to which the ports refer."""
    return {
        f"{table}|{name}"
        for fields in rows.qos.values()
        for table, setting in MAPS.items()
        if (name := t.reference(fields.get(setting)))
    }


def lossless_by_counters(tables: SonicTables) -> Lossless:
    """Where the configuration is unknown: the priorities with PFC frames, and the queues on which the watchdog runs."""
    used: dict[str, set[int]] = {}
    for port, fields in (tables.port_counters or {}).items():
        used.setdefault(port, set()).update(
            priority
            for priority in PRIORITIES
            if any(number(fields.get(f"SAI_PORT_STAT_PFC_{priority}_{way}_PKTS")) for way in ("RX", "TX"))
        )
    for queue, fields in (tables.queue_counters or {}).items():
        if "PFC_WD_STATUS" in fields and queue.number in PRIORITIES:
            used.setdefault(queue.port, set()).add(queue.number)
    same = {port: {priority: priority for priority in sorted(found)} for port, found in used.items() if found}
    return Lossless({port: PortLossless(found, found, frozenset(found)) for port, found in same.items()})


def _listed(text: str) -> frozenset[int] | None:
    """The priorities in `3,4`; None if the text is something else."""
    plain = text.replace(" ", "")
    if not plain:
        return frozenset()
    return frozenset(map(int, plain.split(","))) if LIST.fullmatch(plain) else None


def ports_with_unicast(queues: Iterable[SonicQueue]) -> frozenset[str]:
    """The ports whose queues are typed; on the others, a queue takes all types of packets."""
    return frozenset(queue.port for queue in queues if queue.type == t.UNICAST)


def queue_label(queue: SonicQueue, typed: frozenset[str]) -> str:
    """The number of a queue of unicast, or of all packets where the port has no others; else as SONiC's CLI: `MC10`."""
    if queue.type == t.UNICAST or (queue.type == t.EVERY_TYPE and queue.port not in typed):
        return str(queue.number)
    return f"{PREFIXES.get(queue.type) or label_text(queue.type) + '-'}{queue.number}"


@dataclass(frozen=True, slots=True)
class Polling:
    """How SONiC polls the ASIC."""

    disabled: frozenset[str]
    """Groups of counters that are off: their numbers are those of the day when they were turned off."""
    enabled: frozenset[str]
    intervals: Mapping[str, float]
    """Seconds between two polls of a group, where CONFIG_DB has them."""
    lacking: frozenset[str]
    """Fields of queues that the ASIC cannot count."""

    def fresh(self, names: Iterable[str]) -> tuple[str, ...]:
        """The fields of queues that are polled and that the ASIC has."""
        return tuple(
            name for name in names if t.flex_group(name) not in self.disabled and name not in self.lacking
        )


def polling_of(rows: t.SonicRows, state: Mapping[str, Fields]) -> Polling:
    """What the two databases say; a group that they do not mention is neither enabled nor disabled."""
    groups = {group: rows.get(f"FLEX_COUNTER_TABLE|{group}") for group in t.FLEX_GROUPS}
    states = {group: fields.get("FLEX_COUNTER_STATUS") for group, fields in groups.items()}
    intervals = {group: number(fields.get("POLL_INTERVAL")) for group, fields in groups.items()}
    return Polling(
        disabled=frozenset(group for group, text in states.items() if text == "disable"),
        enabled=frozenset(group for group, text in states.items() if text == "enable"),
        intervals={group: value / 1000 for group, value in intervals.items() if value},
        lacking=frozenset(
            name for name, key in t.CAPABILITIES.items() if state.get(key, {}).get("isSupported") == "false"
        ),
    )


def renewals_of(parts: Iterable[Polling]) -> dict[str, float]:
    """Per source the longest interval of its groups that are polled, in seconds."""
    found: dict[str, float] = {}
    for part in parts:
        for group, seconds in part.intervals.items():
            if group not in part.disabled:
                source = t.FLEX_GROUPS[group]
                found[source] = max(found.get(source, 0.0), seconds)
    return found


@dataclass(frozen=True, slots=True)
class NamespaceView:
    """The tables of one namespace, and what is shown of them."""

    tables: SonicTables
    rows: t.SonicRows
    lossless: Lossless
    polling: Polling
    ports: frozenset[str]
    """The ports of this namespace that lead out of the switch."""
    used: frozenset[int]
    """The priorities with PFC on any port of the switch."""
    everything: bool
    """Show all priorities, queues and groups."""

    @property
    def priorities(self) -> Iterable[int]:
        """The priorities whose counters and settings are shown."""
        return PRIORITIES if self.everything else sorted(self.used)

    def shows_queue(self, port: str, label: str) -> bool:
        """Whether counters and watermarks of the queue are shown."""
        plan = self.lossless.shown.get(port)
        chosen = self.everything or (plan is not None and label in map(str, plan.queues.values()))
        return chosen and port in self.ports

    def watches_queue(self, port: str, label: str) -> bool:
        """Whether the watchdog's part of the queue is shown: its queue has the number of the priority."""
        plan = self.lossless.ports.get(port)
        return port in self.ports and plan is not None and label in map(str, plan.queues)

    def shows_group(self, group: SonicGroup) -> bool:
        """Whether the priority group is shown."""
        if group.port not in self.ports:
            return False
        plan = self.lossless.shown.get(group.port)
        return self.everything or (plan is not None and group.number in plan.groups.values())


def configuration_readings(view: NamespaceView) -> Iterator[SwitchReading]:
    """The settings of the ports of one namespace."""
    if not view.tables.configuration:
        return
    for port in sorted(view.ports):
        plan = view.lossless.ports.get(port)
        for priority in PRIORITIES if port not in view.lossless.unclear else ():
            enabled = int(plan is not None and priority in plan.queues)
            yield of_port(t.CONFIGURATION, port, {"pfc_enable": enabled}, priority=priority)
        if plan is not None:
            yield from _watchdog(port, plan, view.rows.watchdogs.get(port, {}))
        shown = view.lossless.shown.get(port)
        for queue in _shown(view, port, shown.queues if shown else {}, view.rows.queues):
            if values := _ecn(view.rows, port, queue):
                yield of_port(t.CONFIGURATION, port, values, queue=queue)
        for group in _shown(view, port, plan.groups if plan else {}, view.rows.groups):
            name, state = _profile_name(view.rows, port, group), view.tables.state or {}
            profile = view.rows.get(f"BUFFER_PROFILE|{name}") or state.get(f"BUFFER_PROFILE_TABLE|{name}", {})
            values = numbers(profile, ("xoff",))
            if (threshold := _threshold(view, profile)) is not None:
                values["pause_threshold"] = threshold
            if values:
                yield of_port(t.CONFIGURATION, port, values, priority_group=group)


def _shown(
    view: NamespaceView, port: str, lossless: Mapping[int, int], rows: Mapping[tuple[str, int], Fields]
) -> list[int]:
    configured = {number for name, number in rows if name == port} if view.everything else set()
    return sorted({*lossless.values(), *configured})


def _watchdog(port: str, plan: PortLossless, row: Fields) -> Iterator[SwitchReading]:
    """The watchdog of the queues with PFC; its queue has the number of the priority."""
    configured = not row.keys().isdisjoint(("action", "detection_time"))
    settings = numbers(row, ("detection_time", "restoration_time"))
    if not is_absent(row.get("action")):
        settings["action"] = word(row["action"], ACTS)
    for priority in plan.queues:
        watched = configured and priority in plan.watched
        values = {"pfcwd_sw_enable": int(watched), **(settings if watched else {})}
        yield of_port(t.CONFIGURATION, port, values, queue=priority)


def _ecn(rows: t.SonicRows, port: str, queue: int) -> dict[str, RawNumber]:
    """The ECN settings of a queue. Without a WRED profile it marks nothing.

    If no queue of the switch has a row, it is not known: the keys can be lists of ports, which Redis finds only by KEYS.
    """
    row = rows.queues.get((port, queue))
    profile = t.reference((row or {}).get("wred_profile"))
    if not profile:
        return {"ecn": 0} if rows.queues else {}
    fields = rows.get(f"WRED_PROFILE|{profile}")
    if is_absent(fields.get("ecn")):
        return {}
    marks = word(fields["ecn"], MARKS)
    return {"ecn": marks, **(numbers(fields, ECN_NUMBERS) if marks else {})}


def _profile_name(rows: t.SonicRows, port: str, group: int) -> str:
    """The buffer profile of a group; where the switch chooses it by itself, the one that it has chosen."""
    chosen = rows.chosen_groups.get((port, group), {})
    configured = rows.groups.get((port, group), {})
    return t.reference(configured.get("profile")) or t.reference(chosen.get("profile"))


def _threshold(view: NamespaceView, profile: Fields) -> int | None:
    """The fill level at which the group sends pause: `static_th`, or the highest that `dynamic_th` allows.

    A dynamic threshold n is alpha = 2^n times the free part of the pool, so the one group that fills a pool of size S alone
    gets at most alpha x S / (1 + alpha) (SAI, SAI_BUFFER_PROFILE_ATTR_SHARED_DYNAMIC_TH).
    """
    static = number(profile.get("static_th"))
    if isinstance(static, int):
        return static
    exponent, pool = EXPONENT.fullmatch(profile.get("dynamic_th", "")), t.reference(profile.get("pool"))
    state = view.tables.state or {}
    rows = (view.rows.get(f"BUFFER_POOL|{pool}"), state.get(f"BUFFER_POOL_TABLE|{pool}", {}))
    size = next((size for row in rows if isinstance(size := number(row.get("size")), int)), None)
    if exponent is None or size is None:
        return None
    alpha = 2.0 ** int(exponent[0])
    return int(alpha * size / (1 + alpha))


def missing_rows(view: NamespaceView) -> Iterator[str]:
    """References of lossless queues and groups to rows that do not exist: one line each."""
    keys: dict[str, None] = {}
    for port, plan in view.lossless.ports.items():
        if port in view.ports:
            rows = (view.rows.queues.get((port, queue), {}) for queue in plan.queues.values())
            used = (
                *(f"WRED_PROFILE|{t.reference(row.get('wred_profile'))}" for row in rows),
                *(
                    f"BUFFER_PROFILE|{_profile_name(view.rows, port, group)}"
                    for group in plan.groups.values()
                ),
            )
            keys |= dict.fromkeys(key for key in used if not key.endswith("|"))
    for key in keys:
        name = key.partition("|")[2]
        state = f"BUFFER_PROFILE_TABLE|{name}" if key.startswith("BUFFER_PROFILE|") else ""
        if key not in view.rows.named and state not in (view.tables.state or {}):
            yield f"{key} does not exist, and is in use"


def override_reading(views: Sequence[NamespaceView]) -> Iterator[SwitchReading]:
    """Whether the watchdog is overridden on any ASIC: by CONFIG_DB, or on a queue; absent if neither is known."""
    configured = [view for view in views if view.tables.configuration]
    settings = [view.rows.get("PFC_WD|GLOBAL").get("BIG_RED_SWITCH") for view in configured]
    active = any(
        t.OVERRIDE in fields and t.is_front_panel(queue.port)
        for view in views
        for queue, fields in (view.tables.queue_counters or {}).items()
    )
    if configured or active:
        yield SwitchReading(t.CONFIGURATION, (), {"BIG_RED_SWITCH": int(active or "enable" in settings)})


def queue_facts(view: NamespaceView) -> Iterator[SwitchFact]:
    """The queue and the priority group of each priority with PFC, where the configuration has them."""
    for port, plan in view.lossless.ports.items() if view.tables.configuration else ():
        if port not in view.ports:
            continue
        for priority, queue in plan.queues.items():
            labels = {"priority": priority, "queue": queue, "priority_group": plan.groups[priority]}
            yield fact(SWITCH_QUEUE_INFO, port=port, **labels)
