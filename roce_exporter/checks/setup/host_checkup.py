"""What the samples of a host say about whether it can be watched: devices, links, counters, the pause watchdog.

Pure functions over the exporter's own samples, so that a recorded and a simulated host are checked as this one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from roce_exporter.checks.finding import Finding, NotChecked, Side, Status, Topic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from roce_exporter.model import Device, Netdev, Port
    from roce_exporter.view.host_view import View

MLX5_PREVENTION = 0.1
"""Seconds for which mlx5 sends pause before its watchdog stops it, where the setting is automatic."""

LONG_PREVENTION = 1.0
"""A watchdog that takes longer than this lets a storm reach other hosts."""

BITS_PER_BYTE = 8
GIGABIT = 1e9

NOT_READ = (
    ("roce_exporter_unreadable_values", "values that cannot be read: the log names them, /debug/snapshot"),
    ("roce_exporter_unmapped_names", "names that are not in the catalogue: roce-exporter explain lists them"),
)
"""Metric, and what it counts per device."""

Found = Finding | NotChecked


def check_samples(host: View, devices: Sequence[Device]) -> Iterator[Found]:
    """All that follows from one collection."""
    if not devices:
        yield _wrong(
            "devices",
            "No RDMA device is visible",
            "rdma link; load the driver's RDMA module (mlx5_ib, bnxt_re, irdma, ...), or give --path.sysfs in a container",
        )
    for device in devices:
        yield from _device(host, device)
    yield from _firmware(host)
    yield from _sources(host)
    yield from _counters(host, devices)


def device_line(device: Device) -> str:
    """A device in one line; what the host does not report is left out."""
    parts = (
        device.driver or "unknown driver",
        device.model,
        device.board,
        f"firmware {device.firmware}" if device.firmware else "",
        device.pci,
        device.function.upper(),
    )
    return ", ".join(part for part in parts if part)


def _device(host: View, device: Device) -> Iterator[Found]:
    if device.dialect:
        yield _right("devices", device_line(device), device.name)
    else:
        yield _wrong(
            "devices",
            f"{device_line(device)}: the driver is not in the catalogue",
            "roce-exporter explain; roce-exporter capture records the host for a report",
            device.name,
        )
    for port in device.ports:
        place = (device.name, str(port.number))
        for netdev in port.netdevs:
            if netdev.role != "bond":
                yield from _port(host, device, port, netdev)
        if not port.netdevs and port.link_layer == "Ethernet":
            yield _wrong(
                "devices",
                "The network device is not visible, so PFC, pause, link and DCB are missing",
                "run it in the host's network namespace (`hostNetwork: true`, `--network=host`)",
                *place,
            )


def _port(host: View, device: Device, port: Port, netdev: Netdev) -> Iterator[Found]:
    place = (device.name, str(port.number), netdev.name)
    up = host.value("roce_link_up", netdev=netdev.name)
    if up is None:
        seen = host.value("roce_port_up", device=device.name, port=str(port.number)) is not None
        yield NotChecked(f"the state of the link of {netdev.name}", *place[:2], needed=not seen)
    elif not up:
        yield _wrong(
            "link",
            "The link is down",
            f"ethtool {netdev.name}; cable and switch port",
            *place,
            side=Side.LINK,
        )
    else:
        speed = host.value("roce_link_speed_bytes_per_second", netdev=netdev.name)
        yield _right("link", f"up, {speed * BITS_PER_BYTE / GIGABIT:g} Gbit/s" if speed else "up", *place)
    if device.dialect == "mlx5" and device.function != "vf":
        yield _watchdog(host.value("roce_config_pfc_prevention_timeout_seconds", netdev=netdev.name), place)


def _watchdog(seconds: float | None, place: tuple[str, str, str]) -> Finding:
    """How long a NIC may pause its switch before its own watchdog stops it."""
    check = "pause_watchdog"
    fix = f"ethtool --set-tunable {place[2]} pfc-prevention-tout 100"
    if seconds is None:
        return _right(check, f"the pause watchdog has its default, {MLX5_PREVENTION:g} s", *place)
    if seconds == 0:
        text = "The pause watchdog is off: a stuck host pauses its switch without limit"
        return _wrong(check, text, fix, *place)
    if seconds > LONG_PREVENTION:
        return _wrong(check, f"The pause watchdog acts only after {seconds:g} s", fix, *place)
    return _right(check, f"the pause watchdog acts after {seconds:g} s", *place)


def _firmware(host: View) -> Iterator[Found]:
    for labels, state in host.current("roce_devlink_health_state"):
        if state:
            text = f"The driver's health reporter {labels['reporter']} reports an error"
            yield _wrong("firmware", text, "devlink health show; dmesg", labels["device"])
    versions: dict[tuple[str, str], dict[str, str]] = {}
    for labels, _ in host.current("roce_devlink_info"):
        versions.setdefault((labels["device"], labels["component"]), {})[labels["stage"]] = labels["version"]
    seen: set[str] = set()
    for (device, component), found in versions.items():
        running = found.get("running", found.get("stored"))
        if device not in seen and found.get("stored", running) != running:
            seen.add(device)
            text = (
                f"Another firmware is stored than runs ({component} {found['stored']} instead of {running})"
            )
            yield _wrong("firmware", text, "reboot, or reset the firmware as the vendor describes", device)


def _sources(host: View) -> Iterator[Found]:
    for labels, up in host.current("roce_exporter_source_up"):
        if not up:
            netdev = f" of {labels['netdev']}" if labels.get("netdev") else ""
            text = f"The source {labels['source']}{netdev} fails, so its series are missing"
            yield _wrong("sources", text, "the log lines above; /debug/snapshot; dmesg", labels["device"])
    for labels, number in host.current("roce_exporter_quarantined_files"):
        if number:
            text = f"{number:.0f} files of the source {labels['source']} keep failing"
            yield _wrong("sources", text, "dmesg; RoceExporterNotes", labels["device"])


def _counters(host: View, devices: Sequence[Device]) -> Iterator[Found]:
    missing: dict[tuple[str, str], list[str]] = {}
    for labels, value in host.current("roce_exporter_missing_facts"):
        if value:
            missing.setdefault((labels["device"], labels["port"]), []).append(labels["fact"])
    for place, facts in missing.items():
        text = f"Facts that the driver must report are missing: {', '.join(sorted(facts))}"
        fix = "RoceDataMissing; another kernel or driver may have renamed them: roce-exporter explain"
        yield _wrong("counters", text, fix, *place)
    if devices and not missing:
        yield _right("counters", "every port reports the facts that its driver must report")
    for metric, what in NOT_READ:
        numbers: Counter[str] = Counter()
        for labels, value in host.current(metric):
            numbers[labels["device"]] += int(value)
        yield from (NotChecked(f"{number} {what}", device) for device, number in numbers.items() if number)


def _right(check: str, title: str, device: str = "", port: str = "", netdev: str = "") -> Finding:
    return Finding(Topic.SETUP, check, title, Status.OK, device, port, netdev)


def _wrong(check: str, title: str, fix: str, *place: str, side: Side = Side.HOST) -> Finding:
    return replace(_right(check, title, *place), status=Status.DEGRADED, side=side, fix=(fix,))
