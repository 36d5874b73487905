"""Counters and watermarks of SONiC to readings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.switches.numbers import is_absent, number
from roce_exporter.switches.readings import SwitchReading, label_text
from roce_exporter.switches.systems.sonic import tables as t
from roce_exporter.switches.systems.sonic.lossless import ports_with_unicast, queue_label
from roce_exporter.switches.systems.sonic.wanted import (
    GROUP_FIELDS,
    GROUP_WATERMARKS,
    PAUSE_STATUS,
    POOL_WATERMARKS,
    QUEUE_FIELDS,
    QUEUE_WATERMARKS,
    WATCHDOG_STATUS,
    port_fields,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from roce_exporter.switches.readings import Labels, RawNumber
    from roce_exporter.switches.systems.sonic.view import NamespaceView

FLAGS = {
    WATCHDOG_STATUS: {"stormed": 1, "operational": 0},
    PAUSE_STATUS: {"true": 1, "false": 0},
}
"""Fields that are words; another word is no valid number."""


SURE_DIGITS = 20
"""A number with fewer digits is below 2^64 - 1."""


def counter_readings(view: NamespaceView) -> Iterator[SwitchReading]:
    """Everything that is counted on the ports, queues, priority groups and pools that are shown."""
    yield from _ports(view)
    yield from _queues(view)
    yield from _groups(view)
    for window, part in (view.tables.watermarks or {}).items():
        yield from _watermarks(view, window, part)


def _reading(source: str, labels: Labels, fields: t.Fields, names: Iterable[str]) -> Iterator[SwitchReading]:
    """One reading of the fields that the switch has; nothing if it has none of them."""
    values: dict[str, RawNumber] = {}
    for name in names:
        text = fields.get(name)
        if text is None:
            continue
        if text.isdigit() and text.isascii() and len(text) < SURE_DIGITS:  # nearly all of some 20,000 values
            values[name] = int(text)
        elif not is_absent(text):
            values[name] = FLAGS[name].get(text) if name in FLAGS else number(text)
    if values:
        yield SwitchReading(source, labels, values)


def _ports(view: NamespaceView) -> Iterator[SwitchReading]:
    names = port_fields(view.priorities)
    ports = {} if "PORT" in view.polling.disabled else view.tables.port_counters or {}
    for port, fields in ports.items():
        if port in view.ports:
            yield from _reading(t.PORT_COUNTERS, (("port", port),), fields, names)


def _queues(view: NamespaceView) -> Iterator[SwitchReading]:
    queues = view.tables.queue_counters or {}
    typed = ports_with_unicast(queues)
    names = view.polling.fresh(QUEUE_FIELDS)
    watchdog = tuple(name for name in names if name.startswith("PFC_WD_"))
    for queue, fields in queues.items():
        label = queue_label(queue, typed)
        labels = (("port", queue.port), ("queue", label))
        if view.shows_queue(queue.port, label):
            yield from _reading(t.QUEUE_COUNTERS, labels, fields, names)
        elif view.watches_queue(queue.port, label):
            yield from _reading(t.QUEUE_COUNTERS, labels, fields, watchdog)


def _groups(view: NamespaceView) -> Iterator[SwitchReading]:
    groups = {} if "PG_DROP" in view.polling.disabled else view.tables.priority_group_counters or {}
    for group, fields in groups.items():
        if view.shows_group(group):
            yield from _reading(t.GROUP_COUNTERS, _group_labels(group), fields, GROUP_FIELDS)


def _group_labels(group: t.SonicGroup) -> Labels:
    return (("port", group.port), ("priority_group", str(group.number)))


def _watermarks(view: NamespaceView, window: str, part: t.SonicWatermarks) -> Iterator[SwitchReading]:
    """The maxima of one window. A group of watermarks whose polling is off has none: a 0 there is no zero."""
    off = view.polling.disabled
    last = (("window", window),)
    typed = ports_with_unicast(part.queues)
    for queue, fields in () if "QUEUE_WATERMARK" in off else part.queues.items():
        label = queue_label(queue, typed)
        if view.shows_queue(queue.port, label):
            labels = (("port", queue.port), ("queue", label), *last)
            yield from _reading(t.WATERMARKS, labels, fields, QUEUE_WATERMARKS)
    for group, fields in () if "PG_WATERMARK" in off else part.groups.items():
        if view.shows_group(group):
            yield from _reading(t.WATERMARKS, (*_group_labels(group), *last), fields, GROUP_WATERMARKS)
    for pool, fields in () if "BUFFER_POOL_WATERMARK" in off else part.pools.items():
        name = (("pool", pool_label(view, pool)), *last)
        yield from _reading(t.WATERMARKS, name, fields, POOL_WATERMARKS)


def pool_label(view: NamespaceView, pool: str) -> str:
    """The pool's name, on a switch of several ASICs with the ASIC: each has pools of the same names."""
    namespace = view.tables.namespace
    return label_text(f"{namespace}/{pool}" if namespace else pool)
