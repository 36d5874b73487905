"""Why a metric has no series on a host now: driver, source, privilege, a part or command that is not on, or no event yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.catalog import INDEX, storm
from roce_exporter.catalog.row import ANY, HW_COUNTERS, STANDARD
from roce_exporter.catalog.windows import WINDOWS_DIALECTS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from roce_exporter.catalog.row import Row
    from roce_exporter.model import SourceState
    from roce_exporter.normalise.normaliser import Plan

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
    "roce_wire_": "the capture of packets serves it (docs/wire.md)",
}

OPTIONS = {
    "pod_resources": "--kubelet.pod-resources",
    "rdma_namespaces": "a live host, and --rdma.namespaces for what the helper reports",
    FAST_LOOP: "a host that is no recording",
}
"""What switches a source on that is not on by default."""


NO_DEVICE = "this host has no RDMA device, or all are excluded"


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
        yield "nothing yet: it is there only where it applies"
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
