"""Settings of SONiC to readings: PFC, the watchdog, ECN, headroom."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roce_exporter.catalog.named import SWITCH_QUEUE_INFO
from roce_exporter.switches.readings import SwitchFact, SwitchReading
from roce_exporter.switches.reply_values import is_absent, number, numbers, word
from roce_exporter.switches.systems.sonic.tables import CONFIGURATION, OVERRIDE, is_front_panel, reference

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roce_exporter.switches.readings import Labels, RawNumber
    from roce_exporter.switches.systems.sonic.scope import NamespaceView, PortLossless
    from roce_exporter.switches.systems.sonic.tables import Fields, SonicRows

ACTS = {"drop": 1, "forward": 1, "alert": 0}

MARKS = {
    **dict.fromkeys(("ecn_green", "ecn_green_yellow", "ecn_green_red", "ecn_all"), 1),
    **dict.fromkeys(("ecn_none", "ecn_yellow", "ecn_red", "ecn_yellow_red"), 0),
}
"""Whether green packets are marked: all packets are green unless a policer colours them. The thresholds are green's too."""

ECN_NUMBERS = ("green_min_threshold", "green_max_threshold", "green_drop_probability")
EXPONENT = re.compile(r"-?[0-9]{1,2}", re.ASCII)


def configuration_readings(view: NamespaceView) -> Iterator[SwitchReading]:
    """The settings of the ports of one namespace."""
    if not view.tables.configuration:
        return
    for port in sorted(view.ports):
        plan = view.lossless.ports.get(port)
        for priority in view.priorities if port not in view.lossless.unclear else ():
            enabled = int(plan is not None and priority in plan.queues)
            yield from _values((("port", port), ("priority", str(priority))), {"pfc_enable": enabled})
        if plan is not None:
            yield from _watchdog(port, plan, view.rows.watchdogs.get(port, {}))
        shown = view.lossless.shown.get(port)
        for queue in _shown(view, port, shown.queues if shown else {}, view.rows.queues):
            yield from _values((("port", port), ("queue", str(queue))), _ecn(view.rows, port, queue))
        for group in _shown(view, port, plan.groups if plan else {}, view.rows.groups):
            labels = (("port", port), ("priority_group", str(group)))
            yield from _values(labels, _headroom(view, port, group))


def _values(labels: Labels, values: Mapping[str, RawNumber]) -> Iterator[SwitchReading]:
    if values:
        yield SwitchReading(CONFIGURATION, labels, values)


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
        yield SwitchReading(CONFIGURATION, (("port", port), ("queue", str(priority))), values)


def _ecn(rows: SonicRows, port: str, queue: int) -> dict[str, RawNumber]:
    """The ECN settings of a queue. Without a WRED profile it marks nothing.

    If no queue of the switch has a row, it is not known: the keys can be lists of ports, which Redis finds only by KEYS.
    """
    row = rows.queues.get((port, queue))
    profile = reference((row or {}).get("wred_profile"))
    if not profile:
        return {"ecn": 0} if rows.queues else {}
    fields = rows.get(f"WRED_PROFILE|{profile}")
    if is_absent(fields.get("ecn")):
        return {}
    marks = word(fields["ecn"], MARKS)
    return {"ecn": marks, **(numbers(fields, ECN_NUMBERS) if marks else {})}


def _headroom(view: NamespaceView, port: str, group: int) -> dict[str, RawNumber]:
    name, state = _profile_name(view.rows, port, group), view.tables.state or {}
    profile = view.rows.get(f"BUFFER_PROFILE|{name}") or state.get(f"BUFFER_PROFILE_TABLE|{name}", {})
    values = numbers(profile, ("xoff",))
    threshold = _threshold(view, profile)
    if threshold is not None:
        values["pause_threshold"] = threshold
    return values


def _profile_name(rows: SonicRows, port: str, group: int) -> str:
    """The buffer profile of a group; where the switch chooses it by itself, the one that it has chosen."""
    chosen = rows.chosen_groups.get((port, group), {})
    configured = rows.groups.get((port, group), {})
    return reference(configured.get("profile")) or reference(chosen.get("profile"))


def _threshold(view: NamespaceView, profile: Fields) -> int | None:
    """The fill level at which the group sends pause: `static_th`, or the highest that `dynamic_th` allows.

    A dynamic threshold n is alpha = 2^n times the free part of the pool, so the one group that fills a pool of size S alone
    gets at most alpha x S / (1 + alpha) (SAI, SAI_BUFFER_PROFILE_ATTR_SHARED_DYNAMIC_TH).
    """
    static = number(profile.get("static_th"))
    if isinstance(static, int):
        return static
    exponent = EXPONENT.fullmatch(profile.get("dynamic_th", ""))
    size = _pool_size(view, reference(profile.get("pool")))
    if exponent is None or size is None:
        return None
    alpha = 2.0 ** int(exponent[0])
    return int(alpha * size / (1 + alpha))


def _pool_size(view: NamespaceView, name: str) -> int | None:
    state = view.tables.state or {}
    for fields in (view.rows.get(f"BUFFER_POOL|{name}"), state.get(f"BUFFER_POOL_TABLE|{name}", {})):
        size = number(fields.get("size"))
        if isinstance(size, int):
            return size
    return None


def missing_rows(view: NamespaceView) -> Iterator[str]:
    """References of lossless queues and groups to rows that do not exist: one line each."""
    keys = dict.fromkeys(_references(view))
    for key in keys:
        name = key.partition("|")[2]
        state = f"BUFFER_PROFILE_TABLE|{name}" if key.startswith("BUFFER_PROFILE|") else ""
        if key not in view.rows.named and state not in (view.tables.state or {}):
            yield f"{key} does not exist, and is in use"


def _references(view: NamespaceView) -> Iterator[str]:
    for port, plan in view.lossless.ports.items():
        if port not in view.ports:
            continue
        for queue in plan.queues.values():
            if profile := reference(view.rows.queues.get((port, queue), {}).get("wred_profile")):
                yield f"WRED_PROFILE|{profile}"
        for group in plan.groups.values():
            if profile := _profile_name(view.rows, port, group):
                yield f"BUFFER_PROFILE|{profile}"


def override_reading(views: Sequence[NamespaceView]) -> Iterator[SwitchReading]:
    """Whether the watchdog is overridden on any ASIC: by CONFIG_DB, or on a queue; absent if neither is known."""
    configured = [view for view in views if view.tables.configuration]
    settings = [view.rows.get("PFC_WD|GLOBAL").get("BIG_RED_SWITCH") for view in configured]
    active = any(
        OVERRIDE in fields and is_front_panel(queue.port)
        for view in views
        for queue, fields in (view.tables.queue_counters or {}).items()
    )
    if configured or active:
        yield SwitchReading(CONFIGURATION, (), {"BIG_RED_SWITCH": int(active or "enable" in settings)})


def queue_facts(view: NamespaceView) -> Iterator[SwitchFact]:
    """The queue and the priority group of each priority with PFC, where the configuration has them."""
    for port, plan in view.lossless.ports.items() if view.tables.configuration else ():
        if port not in view.ports:
            continue
        for priority, queue in plan.queues.items():
            labels = {"port": port, "priority": str(priority), "queue": str(queue)}
            group = {"priority_group": str(plan.groups[priority])}
            yield SwitchFact(SWITCH_QUEUE_INFO, labels | group)
