"""What the samples of a host say about whether it can be watched: devices, counters, settings.

Pure functions over the exporter's own samples, so that a recorded and a simulated host are checked as this one.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from roce_exporter.catalog import CATALOG
from roce_exporter.checks.setup.checkup_item import CheckupItem, Status, Topic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roce_exporter.model import Device
    from roce_exporter.view.history import TimedSamples

LABELS = {row.name: row.labels for row in CATALOG}

MLX5_PREVENTION = 0.1
"""Seconds for which mlx5 sends pause before its watchdog stops it, where the setting is automatic."""

LONG_PREVENTION = 1.0
"""A watchdog that takes longer than this lets a storm reach other hosts."""

BITS_PER_BYTE = 8
GIGABIT = 1e9


def series_of(samples: TimedSamples, metric: str) -> Iterator[tuple[dict[str, str], float]]:
    """Labels and value of each series of a metric."""
    for values, number in samples.values.get(metric, {}).items():
        yield dict(zip(LABELS[metric], values, strict=True)), number


def check_samples(samples: TimedSamples, devices: Sequence[Device]) -> tuple[CheckupItem, ...]:
    """All results that follow from one collection, in the order of the page."""
    return (
        *_devices(samples, devices),
        *_firmware(samples),
        *_sources(samples),
        *_counters(samples, devices),
        *_unknown_values(samples),
        *_watchdogs(samples, devices),
        *_audit(samples),
    )


def device_line(device: Device) -> str:
    """A device in one line; what the host does not report is left out."""
    firmware = f"firmware {device.firmware}" if device.firmware else ""
    parts = (
        device.driver or "unknown driver",
        device.model,
        device.board,
        firmware,
        device.pci,
        device.function.upper(),
    )
    return f"{device.name}: {', '.join(part for part in parts if part)}"


def _devices(samples: TimedSamples, devices: Sequence[Device]) -> Iterator[CheckupItem]:
    topic = Topic.DEVICES
    if not devices:
        yield CheckupItem(
            topic,
            Status.ATTENTION,
            "No RDMA device is visible.",
            "`rdma link`; load the driver's RDMA module (mlx5_ib, bnxt_re, irdma, ...), or give --path.sysfs in a container",
        )
    up = {labels["netdev"]: value for labels, value in series_of(samples, "roce_link_up")}
    speed = {
        labels["netdev"]: value for labels, value in series_of(samples, "roce_link_speed_bytes_per_second")
    }
    for device in devices:
        yield CheckupItem(
            topic,
            Status.OK if device.dialect else Status.ATTENTION,
            device_line(device) + ".",
            ""
            if device.dialect
            else f"`roce-exporter explain`; the driver of {device.name} is not in the catalogue: `roce-exporter capture` records the host for a report",
        )
        for port in device.ports:
            for netdev in port.netdevs:
                if netdev.role != "bond":
                    yield _link(f"{device.name} port {port.number}, {netdev.name}", netdev.name, up, speed)
            if not port.netdevs and port.link_layer == "Ethernet":
                yield CheckupItem(
                    topic,
                    Status.ATTENTION,
                    f"{device.name} port {port.number}: its network device is not visible, so PFC, pause, link and DCB are missing.",
                    "run it in the host's network namespace (`hostNetwork: true`, `--network=host`)",
                )


def _link(where: str, netdev: str, up: Mapping[str, float], speed: Mapping[str, float]) -> CheckupItem:
    if netdev not in up:
        return CheckupItem(Topic.DEVICES, Status.UNKNOWN, f"{where}: the state of the link is not reported.")
    if not up[netdev]:
        return CheckupItem(
            Topic.DEVICES,
            Status.ATTENTION,
            f"{where}: the link is down.",
            f"`ethtool {netdev}`, cable and switch port",
        )
    rate = f", {speed[netdev] * BITS_PER_BYTE / GIGABIT:g} Gbit/s" if speed.get(netdev) else ""
    return CheckupItem(Topic.DEVICES, Status.OK, f"{where}: up{rate}.")


def _firmware(samples: TimedSamples) -> Iterator[CheckupItem]:
    for labels, state in series_of(samples, "roce_devlink_health_state"):
        if state:
            text = f"{labels['device']}: the driver's health reporter {labels['reporter']} reports an error."
            yield CheckupItem(Topic.DEVICES, Status.ATTENTION, text, "`devlink health show`, `dmesg`")
    versions: dict[tuple[str, str], dict[str, str]] = {}
    for labels, _ in series_of(samples, "roce_devlink_info"):
        versions.setdefault((labels["device"], labels["component"]), {})[labels["stage"]] = labels["version"]
    for device in dict.fromkeys(name for name, _ in versions):
        waiting = [
            f"{component} {found['stored']} instead of {found['running']}"
            for (name, component), found in versions.items()
            if name == device
            and found.get("stored", found.get("running")) != found.get("running", found.get("stored"))
        ]
        if waiting:
            text = f"{device}: another firmware is stored than runs ({waiting[0]})."
            yield CheckupItem(
                Topic.DEVICES, Status.ATTENTION, text, "reboot, or reset the firmware as the vendor describes"
            )


def _sources(samples: TimedSamples) -> Iterator[CheckupItem]:
    for labels, up in series_of(samples, "roce_exporter_source_up"):
        if not up:
            netdev = f" ({labels['netdev']})" if labels.get("netdev") else ""
            text = f"{labels['device'] or 'this host'}{netdev}: the source {labels['source']} fails, so its series are missing."
            yield CheckupItem(
                Topic.COUNTERS, Status.ATTENTION, text, "the log lines above, /debug/snapshot, `dmesg`"
            )
    for labels, number in series_of(samples, "roce_exporter_quarantined_files"):
        if number:
            text = f"{labels['device']}: {number:.0f} files of the source {labels['source']} keep failing."
            yield CheckupItem(Topic.COUNTERS, Status.ATTENTION, text, "`dmesg`; RoceFilesQuarantined")


def _counters(samples: TimedSamples, devices: Sequence[Device]) -> Iterator[CheckupItem]:
    missing: dict[str, list[str]] = {}
    for labels, value in series_of(samples, "roce_exporter_missing_facts"):
        if value:
            missing.setdefault(f"{labels['device']} port {labels['port']}", []).append(labels["fact"])
    for where, facts in missing.items():
        text = f"{where} lacks facts that its driver must report: {', '.join(sorted(facts))}."
        yield CheckupItem(
            Topic.COUNTERS,
            Status.ATTENTION,
            text,
            "RoceFactsMissing; another kernel or driver may have renamed them: `roce-exporter explain`",
        )
    if devices and not missing:
        yield CheckupItem(
            Topic.COUNTERS, Status.OK, "Every port reports the facts that its driver must report."
        )


def _unknown_values(samples: TimedSamples) -> Iterator[CheckupItem]:
    for metric, what, remedy in _UNKNOWN_VALUES:
        numbers: Counter[str] = Counter()
        for labels, value in series_of(samples, metric):
            numbers[labels["device"]] += int(value)
        for device, number in numbers.items():
            if number:
                yield CheckupItem(Topic.COUNTERS, Status.OPTIONAL, f"{device}: {number} {what}.", remedy)


_UNKNOWN_VALUES = (
    ("roce_exporter_unreadable_values", "values cannot be read", "the log lines name them, /debug/snapshot"),
    (
        "roce_exporter_unmapped_names",
        "names of the driver are not in the catalogue",
        "`roce-exporter explain` lists them",
    ),
)
"""Metric, what it counts, and where the names are."""


def _watchdogs(samples: TimedSamples, devices: Sequence[Device]) -> Iterator[CheckupItem]:
    """How long a NIC may pause its switch before its own watchdog stops it."""
    known = {
        labels["netdev"]: value
        for labels, value in series_of(samples, "roce_config_pfc_prevention_timeout_seconds")
    }
    for device in devices:
        if device.dialect == "mlx5" and device.function != "vf":
            for port in device.ports:
                for netdev in port.netdevs:
                    if netdev.role != "bond":
                        yield _watchdog(
                            f"{device.name} port {port.number}, {netdev.name}", netdev.name, known
                        )


def _watchdog(where: str, netdev: str, known: Mapping[str, float]) -> CheckupItem:
    seconds = known.get(netdev)
    fix = f"`ethtool --set-tunable {netdev} pfc-prevention-tout 100`"
    if seconds is None:
        return CheckupItem(
            Topic.SETTINGS, Status.OK, f"{where}: the pause watchdog has its default, {MLX5_PREVENTION:g} s."
        )
    if seconds == 0:
        return CheckupItem(
            Topic.SETTINGS,
            Status.ATTENTION,
            f"{where}: the pause watchdog is off: a stuck host pauses its switch without limit.",
            fix,
        )
    if seconds > LONG_PREVENTION:
        return CheckupItem(
            Topic.SETTINGS,
            Status.ATTENTION,
            f"{where}: the pause watchdog acts only after {seconds:g} s.",
            fix,
        )
    return CheckupItem(Topic.SETTINGS, Status.OK, f"{where}: the pause watchdog acts after {seconds:g} s.")


def _audit(samples: TimedSamples) -> Iterator[CheckupItem]:
    results = list(series_of(samples, "roce_config_check_ok"))
    wrong: Counter[str] = Counter(labels["check"] for labels, ok in results if not ok)
    hidden = sum(value == 1 for _, value in series_of(samples, "roce_config_check_unreadable"))
    if wrong:
        checks = ", ".join(f"{check} ({count})" for check, count in wrong.most_common())
        text = f"{wrong.total()} of {len(results)} checks of settings fail: {checks}."
        yield CheckupItem(
            Topic.SETTINGS, Status.ATTENTION, text, "`roce-exporter audit` has the values and the commands"
        )
    elif results:
        yield CheckupItem(Topic.SETTINGS, Status.OK, f"All {len(results)} checks of settings pass.")
    if hidden:
        text = f"{hidden} checks could not read their setting."
        yield CheckupItem(
            Topic.SETTINGS, Status.OPTIONAL, text, "`roce-exporter audit`; the privileges in README.md"
        )
