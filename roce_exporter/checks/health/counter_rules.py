"""Rules of counters that need no more than a table, `counters.txt`: a rise that is a sign by itself, and what should not rise and no other rule reads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from roce_exporter.catalog import CATALOG, INDEX
from roce_exporter.catalog.drivers import dialect_of, family_of
from roce_exporter.catalog.table import sections
from roce_exporter.checks.finding import Side
from roce_exporter.checks.health.causes import MEDIUM, Rule, Symptom, rose, texts
from roce_exporter.checks.health.link_rules import steady
from roce_exporter.checks.thresholds import number_of
from roce_exporter.view.host_view import PortView, Rise

FUNCTIONS, OWNED = "roce_vf_info", "roce_owner_queue_pairs"
"""Which function a VF is, and the owners of a device, where they are surveyed."""
UNREAD = "A counter of faults rises that no other rule reads"
STEADY = 10.0
"""A rise within `MEDIUM` that counts as a last resort."""
ROUNDS = 3
"""Intervals in which it has to rise, or all where there are fewer: one burst is a restart, a job that ended, a stray."""
EITHER = "the driver does not say whether this host received or sent these NAKs: it can have refused requests of a peer"
DISCARDS = "roce_port_receive_discards_total"
OF_PACKETS = ("packets", "frames")
"""Units that are compared with packets."""


class Counted(NamedTuple):
    """A counter whose rise is a sign by itself."""

    cause: str
    window: str
    """A time, or the name of a limit."""
    least: float
    row: str
    what: str


class Kind(NamedTuple):
    """What a group of counters of the last resort is about."""

    cause: str
    side: Side | None
    harmless: float
    """Share of packets up to which a rise is no finding."""
    names: tuple[str, ...]
    """Ends of names."""


def _counted(heading: str) -> Iterator[Counted]:
    for entry in _TABLE[heading]:
        cause, window, *least = entry.head.split(" ")
        for _, line in entry.more:
            name, _, what = line.strip().partition(": ")
            yield Counted(cause, window, float(*least), f"roce_{name}", what)


def _kinds() -> Iterator[Kind]:
    for entry in _TABLE["unexplained"]:
        cause, side, harmless = entry.head.split(" ")
        names = tuple(name for _, line in entry.more for name in line.split())
        yield Kind(cause, None if side == "-" else Side(side), float(harmless), names)


_TABLE = dict(sections("counters.txt", Path(__file__).with_name("counters.txt").read_text(encoding="utf-8")))
OF_PORTS, OF_DEVICES = tuple(_counted("port")), tuple(_counted("device"))
KINDS = tuple(_kinds())

FAULT_ROWS = {
    row.name: kind
    for row in CATALOG
    if row.usual == 0 and (kind := next((one for one in KINDS if row.name.endswith(one.names)), None))
    if "device" in row.labels and not row.name.startswith(("roce_switch", "roce_windows", "roce_owner"))
}
"""The counters of the last resort, and what they are about; see *Limits* of docs/diagnosis.md."""
ROWS_OF_COUNTERS = FAULT_ROWS.keys() | {FUNCTIONS, OWNED, *(one.row for one in (*OF_PORTS, *OF_DEVICES))}


def counters_of(cause: str) -> tuple[str, ...]:
    """The rows whose rise is a sign of this cause by itself."""
    return tuple(one.row for one in (*OF_PORTS, *OF_DEVICES) if one.cause == cause)


def discards_too_long(port: PortView) -> bool:
    """Whether the port discards only RDMA packets that are longer than the MTU, so that they are no drops of this host."""
    return family_of(dialect_of(port.label("roce_device_info", "driver"))).oversized_discards


def _symptoms(counted: Sequence[Counted], port: PortView) -> Iterator[Symptom]:
    for one in counted if discards_too_long(port) else (one for one in counted if one.row != DISCARDS):
        window = number_of(one.window)
        rise = port.rise(one.row, port.limit(one.window, "window") if window is None else window)
        if rise and rise.amount >= max(one.least, 1):
            family = family_of(dialect_of(port.label("roce_device_info", "driver")))
            is_open = one.cause == "requests_refused" and family.undirected_naks
            # as many as this host refused are those that it sent
            sent = port.rise(one.row.replace("_requester_", "_responder_"), rise.seconds) if is_open else None
            if sent is None or sent.amount < rise.amount:
                yield Symptom(one.cause, (rose(rise, one.what),), texts(is_open and not sent and EITHER))


def _rises(port: PortView) -> Iterator[Symptom]:
    packets = [port.rose(f"roce_port_{way}_packets_total", MEDIUM) for way in ("receive", "transmit")]
    for name, kind in FAULT_ROWS.items():
        window, least, rounds = (MEDIUM, STEADY, ROUNDS) if kind.harmless else (2 * MEDIUM, 1.0, 1)
        rise = port.rise(name, window)
        if rise and rise.amount:  # what is lost with a link is the link's
            rise = Rise(sum(steady(port, track, window) for track in port.tracks(name)), rise.seconds)
        if rise is None or rise.amount < least or (name == DISCARDS and discards_too_long(port)):
            continue
        ratio = rise.amount / max(packets) if any(packets) and INDEX.named[name].unit in OF_PACKETS else 1.0
        if ratio <= kind.harmless:
            continue
        intervals = [amount for _, _, amount in port.stretches(name, 0.0, window)]
        if sum(amount > 0 for amount in intervals) >= min(rounds, len(intervals)):
            way = next((one for one in ("receive", "transmit") if one in name), "")
            said = (f"{_said(port, name, rise)}, normally 0",)
            title = UNREAD if kind.cause == "fault_counted" else ""
            yield Symptom(kind.cause, said, side=kind.side, direction=way, title=title)


def _said(port: PortView, name: str, rise: Rise) -> str:
    """The rise in words: how the row's HELP begins, and which VF where it is one's."""
    what = re.split(r"[.,;:](?: |$)", INDEX.named[name].help)[0].removeprefix("Number of ")
    what = (what[0].lower() if what[1].islower() else what[0]) + what[1:]
    said = f"{rose(rise, what)} ({name})"
    functions = [
        f"{track.labels['vf']}{_function(port, track.labels['netdev'], track.labels['vf'])}"
        for track in port.tracks(name)
        if "vf" in track.labels and (one := port.rise_of(name, track, MEDIUM)) and one.amount
    ]
    return f"VF {', '.join(functions)}: {said}" if functions else said


def _function(port: PortView, netdev: str, vf: str) -> str:
    """PCI address and RDMA device of a VF, and whose processes use it, as far as they are seen here."""
    for track in port.tracks(FUNCTIONS, netdev=netdev, vf=vf):
        device = track.labels["rdma_device"]
        owners = {one.labels["owner"] for one in port.host.of(device, "", OWNED)} if device else set()
        return "".join(f" {one}" for one in (track.labels["pci"], device, *sorted(owners)) if one)
    return ""


COUNTED_RULES: tuple[Rule, ...] = (partial(_symptoms, OF_PORTS),)
DEVICE_COUNTED_RULES: tuple[Rule, ...] = (partial(_symptoms, OF_DEVICES),)
COUNTER_RULES: tuple[Rule, ...] = (_rises,)
"""Rules of one port, the last of all."""
