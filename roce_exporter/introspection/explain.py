r"""What a raw counter or a metric means, where it comes from, and its current value, as text for the terminal.

Also works on a host without the NIC: names of any driver are matched against the whole catalogue, including names that
contain a priority, a lane or a traffic class. For an unknown name the nearest known names are suggested.

Windows' own tools print a counter as `\\HOST\Object(instance)\Counter` and ignore case: all parts but the counter may be missing.

Also why a metric has no series on a host now: driver, source, privilege, a part or command that is not on, or no event yet.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from roce_exporter.catalog import AREAS, INDEX, PROCESS, pattern_of, storm, windows
from roce_exporter.catalog.left_out import LEFT_OUT
from roce_exporter.catalog.row import ANY, HW_COUNTERS, STANDARD, MetricSet, Row
from roce_exporter.catalog.windows import WINDOWS_DIALECTS
from roce_exporter.checks.health.causes import NAMED, Cause
from roce_exporter.errors import NO_DEVICE
from roce_exporter.introspection.debug import series_text

if TYPE_CHECKING:
    from roce_exporter.exporter import Observation
    from roce_exporter.model import SourceState
    from roce_exporter.normalise.normaliser import Normaliser, Plan
    from roce_exporter.normalise.series import Series

    Now = list[tuple[Series, float | None]]

NEAREST = 3  # number of names that are suggested if no name matches
SETS = list(MetricSet)
MANY = 8  # series that are shown although they are 0
ALIKE = 0.6  # minimum similarity of a suggested name, from 0 to 1


class Explained(NamedTuple):
    """One meaning of a name: its lines for the terminal, and of a metric its fields for a program."""

    lines: Sequence[str]
    fields: Mapping[str, Any] = {}


def explain(
    name: str, observation: Observation, normaliser: Normaliser, host: HostStates
) -> Iterator[Explained]:
    """What a metric name, a raw name or a reason for a port's health means; nothing for an unknown name."""
    if cause := NAMED.get(name):
        yield Explained([*_about_cause(cause)])
    rows = [row for row in INDEX.rows if name in (row.name, row.name.removesuffix("_total"))]
    of_windows = [*about_setting(name), *left_out_counter(name)]
    if of_windows:
        yield Explained(of_windows)
    # Before the patterns: some of them match any three words.
    rows = rows or rows_of_counter(name)
    if not (rows or of_windows):
        raw_names = ((row, raw) for row in INDEX.rows for one in row.spellings for raw in one.raw)
        rows = list(dict.fromkeys(row for row, raw in raw_names if name == raw or _match(raw, name)))
    for row in rows:
        now = _now(row, observation)
        missing = [*_missing(row, now, host)]
        lines = [*_about_row(row, name), *_values_now(row, now, missing)]
        yield Explained(lines, _fields(row, now, missing))
    for dialect, source, reason in _reasons(name, normaliser):
        yield Explained([f"{name} ({dialect}, {source}): not exported: {reason}"])
    for one in unmapped(normaliser):
        if one["name"] == name:
            line = "{name}: {device} port {port} has it in {source}; it is not in the catalogue"
            yield Explained([line.format_map(one)], one)


def _about_cause(cause: Cause) -> Iterator[str]:
    names = {"device": "DEVICE", "port": "PORT", "netdev": "NETDEV"}
    yield f"{cause.name} (a reason for the health of a port: {cause.health.name.lower()}, side {cause.side}, {cause.sure})"
    yield f"  {cause.title}"
    yield f"  likely: {cause.likely}"
    yield f"  wrong if {cause.wrong_if}"
    yield from (f"  next: {step.format_map(names)}" for step in cause.next)
    yield f"  runbook: alerts/runbooks/{cause.runbook}.md"


def nearest(name: str, alerts: Iterable[str] = ()) -> list[str]:
    """The metrics and raw names of the catalogue, and the alerts, that are most similar to this one, the most similar first.

    A number in the name matches a priority, a lane or a queue in the catalogue.
    """
    known = {_blank(alert): alert for alert in alerts} | {row.name: row.name for row in INDEX.rows}
    for row in INDEX.rows:
        for spelling in row.spellings:
            for raw in spelling.raw:
                known.setdefault(_blank(re.sub(r"\{\w+\}", "0", raw)), raw)
    for windows_name in windows_names():
        known.setdefault(_blank(re.sub(r"\{\w+\}", "0", windows_name)), windows_name)
    found = difflib.get_close_matches(_blank(name), [*known], n=NEAREST, cutoff=ALIKE)
    return list(dict.fromkeys(known[one] for one in found))


def unmapped(normaliser: Normaliser) -> Iterator[dict[str, str]]:
    """Every raw name of this host that is not in the catalogue, with its place."""
    for device, plan in sorted(normaliser.plans.items()):
        driver = plan.device.dialect or "unknown driver"
        for source, port, raw in plan.unmapped:
            yield {"device": device, "driver": driver, "port": str(port), "source": source, "name": raw}


def _blank(name: str) -> str:
    """The name in lower case, with one 0 for every number."""
    return re.sub(r"\d+", "0", name.lower())


def _match(raw: str, name: str) -> re.Match[str] | None:
    # A raw name that consists of a placeholder only would match every name.
    return None if re.fullmatch(r"\{\w+\}", raw) else pattern_of(raw).fullmatch(name)


def _about_row(row: Row, name: str) -> Iterator[str]:
    yield f"{row.name} ({row.kind}, {row.unit}, {row.stability})"
    yield f"  {row.help}"
    yield f"  in the sets {', '.join(SETS[SETS.index(row.metric_set) :])}"
    for spelling in row.spellings:
        who = "any driver" if spelling.dialect == ANY else spelling.dialect
        scale = f" x {spelling.times}" if spelling.times != 1 else ""
        scale += f" / {spelling.per}" if spelling.per != 1 else ""
        raw = (" - " if spelling.difference else " + ").join(spelling.raw)
        of_windows = spelling.source == windows.PERFORMANCE_COUNTER
        proof = f"; {windows.proof_of(spelling.raw[0])}" if of_windows else ""
        yield f"  {who}: {raw}{scale} in {spelling.source}, {spelling.bits} bits{proof}"
    # The values of the placeholders in this name: `priority 3`.
    matches = (_match(raw, name) for spelling in row.spellings for raw in spelling.raw)
    if labels := next((match.groupdict() for match in matches if match and match.groupdict()), None):
        yield f"  {name}: {', '.join(f'{label} {value}' for label, value in labels.items())}"


def _now(row: Row, observation: Observation) -> Now:
    return [
        (series, value)
        for part in observation.samples
        for series, value in zip(part.series, part.values, strict=True)
        if series.row is row
    ]


def _missing(row: Row, found: Now, host: HostStates) -> Iterator[str]:
    """Why there are no series of the row, or of devices without one."""
    if not found:
        yield from why_missing(row, host)
    elif row.spellings and "device" in row.labels:
        at = row.labels.index("device")
        devices = {series.labels[at] for series, _ in found}
        rest = [plan for plan in host.plans if plan.device.name not in devices]
        yield from why_missing(row, host._replace(plans=rest)) if rest else ()


def _values_now(row: Row, found: Now, missing: Iterable[str]) -> Iterator[str]:
    if not found:
        yield from (f"  no series now: {reason}" for reason in missing)
        return
    yield "  now"
    # Buckets are for programs, and zeros in a long list hide what is not 0.
    totals = [one for one in found if one[0].suffix != "_bucket"] or found
    shown = [one for one in totals if one[1] != 0 or len(totals) <= MANY]
    for series, value in shown:
        text = f"{series_text(series)} {'unreadable' if value is None else value}"
        yield f"    {text.removeprefix(row.name).strip()}"
    if rest := len(totals) - len(shown):
        yield f"    0 of {'all' if not shown else 'the other'} {rest} series"
    yield from (f"    {reason}" for reason in missing)
    yield from (f"  {reason}" for reason in why_not_served(row))


def _fields(row: Row, found: Now, missing: Sequence[str]) -> dict[str, Any]:
    return {
        "metric": row.name,
        **{name: getattr(row, name) for name in ("kind", "unit", "stability", "help")},
        "sets": SETS[SETS.index(row.metric_set) :],
        "spellings": [asdict(one) for one in row.spellings],
        "now": [
            {
                "series": row.name + series.suffix,
                "labels": {name: text for name, text in zip(row.labels, series.labels, strict=True) if text},
                "value": value,
            }
            for series, value in found
        ],
        "missing": missing,
    }


def _reasons(name: str, normaliser: Normaliser) -> Iterator[tuple[str, str, str]]:
    """Driver, source and reason why the name is not exported: for this host's drivers, or else for any driver."""
    here = {
        (plan.device.dialect, source)
        for plan in normaliser.plans.values()
        for source, _, _, names in plan.key
        if name in names
    }
    for dialect, source in sorted(here):
        if reason := INDEX.left_out(dialect, source, name):
            yield dialect or "unknown driver", source, reason
    for entry in () if here else LEFT_OUT:
        if re.fullmatch(entry.pattern, name) and not INDEX.claimed(entry.dialect, entry.source, name):
            yield "any driver" if entry.dialect == ANY else entry.dialect, entry.source, entry.reason.text


_PATH = re.compile(r"(?:\\\\[^\\]+)?\\?(?:([^\\(]+?)(?:\(.*\))?\\)?([^\\]+)")
"""Host, object with instance, counter; only the counter is needed."""


def windows_names() -> Iterator[str]:
    """The names of counters without their object, and those of settings."""
    for raw, _ in _counters():
        yield windows.counter_path(raw)[1]
    for setting in windows.WINDOWS_SETTINGS:
        yield setting.name


def rows_of_counter(name: str) -> list[Row]:
    """The rows that a counter of Windows belongs to; several where objects have counters of the same name."""
    path = _split(name)
    if not path:
        return []
    places = [(row, *windows.counter_path(raw.casefold())) for raw, row in _counters()]
    return list(
        dict.fromkeys(row for row, where, known in places if known == path[1] and path[0] in ("", where))
    )


def left_out_counter(name: str) -> Iterator[str]:
    """Lines about a counter of Windows that deliberately has no metric; none for any other name."""
    path = _split(name)
    objects = [one for one in windows.OBJECTS if path and path[0] in ("", one.casefold())]
    raw_names = [f"{one}{windows.SEPARATOR}{path[1]}" for one in objects if path]
    for raw in raw_names:
        for entry in LEFT_OUT:
            pattern = re.compile(entry.pattern, re.IGNORECASE)
            if entry.source == windows.PERFORMANCE_COUNTER and pattern.fullmatch(raw):
                counter_object, _ = windows.counter_path(raw)
                yield f"{name} ({entry.dialect}, {counter_object}): not exported: {entry.reason.text}"


def about_setting(name: str) -> Iterator[str]:
    """Lines about a setting of Windows; none for any other name."""
    for setting in windows.WINDOWS_SETTINGS:
        if match := setting.matches(name.strip()):
            yield f"{setting.name} (setting of WinOF-2, {setting.place})"
            yield f"  {setting.meaning}"
            if setting.values:
                yield f"  values: {setting.values}"
            if match.groupdict():
                numbers = ", ".join(f"{label} {number}" for label, number in match.groupdict().items())
                yield f"  {name}: {numbers}"
            yield f"  {on_linux(setting)}"


def on_linux(setting: windows.WindowsSetting) -> str:
    """The metric of the same setting on Linux, with the labels that name it."""
    if not setting.source:
        return "no metric: Linux has no such setting, and no counter of Windows has its value"
    row = row_of(setting)
    labels = ""
    if setting.raw.count(".") == len(("role", "parameter")):
        role, parameter, _ = setting.raw.split(".")
        labels = f'{{role="{role}", parameter="{parameter}"}}'
    return f"on Linux: {row.name}{labels}; no counter of Windows has its value, so Windows hosts have no such series"


def row_of(setting: windows.WindowsSetting) -> Row:
    """The row of the same setting on Linux. LookupError: the setting names no row."""
    row = INDEX.claimed("", setting.source, re.sub(r"\{\w+\}", "0", setting.raw))
    if row is None:
        raise LookupError(f"{setting.name}: no row has {setting.raw} in {setting.source}")
    return row


def _counters() -> list[tuple[str, Row]]:
    return [
        (raw, row) for (_, source, raw), row in INDEX.claims.items() if source == windows.PERFORMANCE_COUNTER
    ]


def _split(name: str) -> tuple[str, str] | None:
    """Object (empty if not given) and counter in lower case; None for a text that cannot be a counter's path."""
    match = _PATH.fullmatch(name.strip())
    return ((match[1] or "").strip().casefold(), match[2].strip().casefold()) if match else None


PRIVILEGES = {
    "transceiver": "CAP_NET_ADMIN",
    "devlink_vnic": "CAP_NET_ADMIN",
    "delay_drop": "access to /sys/kernel/debug",
    "configuration": "access to /sys/kernel/debug, and to configfs for the settings of rdma_cm",
    "limits": "owners.limits and access to /dev/infiniband/uverbsN",
    "kernel_log": "/dev/kmsg, and CAP_SYSLOG unless the sysctl kernel.dmesg_restrict is 0",
}
"""What a source needs besides a readable /sys, as in the table of privileges in docs/troubleshooting.md."""

FAST_LOOP = "fast loop"
SETTINGS = "checks of settings"

OF_PARTS = (
    ("roce_owner_device_info", "pod_resources", "no pod has a network device"),
    ("roce_owner_", "owners", "no process holds such an object"),
    ("roce_port_health", "health", "no port has a finding"),
    ("roce_kernel_log_", "kernel_log", "no message about a device"),
    ("roce_namespace_", "rdma_namespaces", "no other namespace has an RDMA device"),
    ("roce_rdma_namespaces_", "rdma_namespaces", "the kernel does not report it"),
    ("roce_exporter_rdma_", "rdma_namespaces", "the helper reports nothing"),
    ("roce_config_", SETTINGS, "no port has what it is about"),
)
"""How names of rows without a raw name begin, the source that fills them, and what is true if that works."""

OF_COMMANDS = {
    "roce_switch_": "the service of switches serves it (docs/switches.md)",
    "roce_probe_": "`roce-exporter probe` serves it (docs/probing.md)",
    "roce_wire_": "the capture of packets serves it (docs/wire.md)",
    **dict.fromkeys(
        (row.name for area in AREAS if area.name == PROCESS for row in area.rows),
        "every process that serves has it, at its path of the metrics",
    ),
}

OPTIONS = {
    "pod_resources": "--kubelet.pod-resources",
    "rdma_namespaces": "a live host, and --rdma.namespaces for what the helper reports",
    FAST_LOOP: "a host that is no recording",
}
"""What switches a source on that is not on by default."""


class HostStates(NamedTuple):
    """What is known of the sources of a host."""

    plans: Collection[Plan]
    states: Collection[SourceState]
    """Of all sources, those that are read between collections included."""
    disabled: Collection[str] = ()
    """By --source.disable."""
    has_fast_loop: bool = True


def why_missing(row: Row, host: HostStates) -> Iterator[str]:
    """One reason per device, or one for the host."""
    for start, where in OF_COMMANDS.items():
        if row.name.startswith(start):
            yield f"not a metric of hosts: {where}"
            return
    if row.spellings and all(spelling.dialect in WINDOWS_DIALECTS for spelling in row.spellings):
        yield "only hosts with Windows have it"
        return
    if not host.plans and "device" in row.labels:
        yield NO_DEVICE
        return
    source, quiet = "", ""
    if row.name in STORM_NAMES:
        source, quiet = FAST_LOOP, "no storm, or no priority with PFC whose pause the driver counts"
    elif not row.spellings:
        known = (one[1:] for one in OF_PARTS if row.name.startswith(one[0]))
        source, quiet = next(known, ("", ""))
    if source == FAST_LOOP and not host.has_fast_loop:
        yield f"the fast loop is off: it needs {OPTIONS[FAST_LOOP]}"
    elif source in (FAST_LOOP, SETTINGS):
        yield f"nothing yet: {quiet}"
    elif source:
        yield from _of_source(source, [one for one in host.states if one.source == source], quiet, host)
    else:
        yield from _of_drivers(row, host)


def why_not_served(row: Row) -> Iterator[str]:
    """Why /metrics does not show series that the host has, if it does not by default."""
    if not STANDARD.includes(row.metric_set):
        yield f"not served in the set {STANDARD}: --metrics.set={row.metric_set} shows it"


STORM_NAMES = frozenset(row.name for row in vars(storm).values() if hasattr(row, "spellings"))


def _of_source(source: str, states: Collection[SourceState], quiet: str, host: HostStates) -> Iterator[str]:
    """Why a source gives nothing; `states` are its states, by device if it has several."""
    privilege = f"; it needs {PRIVILEGES[source]}" if source in PRIVILEGES else ""
    if source in host.disabled:
        yield f"the source {source} is disabled (--source.disable)"
    elif not states:
        yield f"the source {source} is not read" + (
            f": it needs {OPTIONS[source]}" if source in OPTIONS else privilege
        )
    for state in states if source not in host.disabled else ():
        where = f"{state.device}: " if state.device else ""
        if state.up is False:
            yield f"{where}the source {source} fails: {state.error}{privilege}"
        elif state.up is None:
            yield f"{where}there is no interface for the source {source}{privilege}"
        else:
            yield f"{where}nothing yet: {quiet}"


def _of_drivers(row: Row, host: HostStates) -> Iterator[str]:
    if not row.spellings:
        yield "nothing yet: a series begins where there is something to say"
        return
    lacking: dict[str, list[str]] = {}
    for plan in host.plans:
        spoken = [one for one in row.spellings if INDEX.speaks(plan.device.dialect, one)]
        if not spoken:
            lacking.setdefault(plan.device.dialect or "unknown", []).append(plan.device.name)
        for source in dict.fromkeys(spelling.source for spelling in spoken):
            raw = [name for one in spoken if one.source == source for name in one.raw]
            yield from _of_device(plan, source, raw, host)
    drivers = sorted({one.dialect for one in row.spellings} - {ANY, *WINDOWS_DIALECTS})
    for dialect, devices in lacking.items():
        yield f"the driver {dialect} ({', '.join(devices)}) does not have it; drivers that do: {', '.join(drivers)}"


def _of_device(plan: Plan, source: str, raw: Collection[str], host: HostStates) -> Iterator[str]:
    device = plan.device.name
    # RDMA netlink reports the hardware counters, too.
    sources = (source, "rdma_netlink") if source == HW_COUNTERS else (source,)
    if any(read == source and names for read, _, _, names in plan.key):
        lists = ", ".join(raw)
        needs = f"; some values of {source} need {PRIVILEGES[source]}" if source in PRIVILEGES else ""
        yield f"{device}: the source {source} does not list {lists}: device, firmware or driver version lacks it{needs}"
        return
    states = [one for one in host.states if one.device == device and one.source in sources]
    yield from _of_source(source, states, "it lists nothing", host)
