"""Whether the exporter can read what it needs on this host, and whether Prometheus receives it.

What samples say about whether a host can be watched (devices, links, counters, the pause watchdog): pure functions over the exporter's own
samples, so that a recorded and a simulated host are checked as this one. What this process may not read and what that would add, the
host's clock, and whether the samples of this host arrive anywhere.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from roce_exporter.catalog.drivers import DRIVERS
from roce_exporter.checks.finding import Finding, NotChecked, Side, Status, Topic
from roce_exporter.net import NetError
from roce_exporter.words import counted, duration, few, some

if TYPE_CHECKING:
    from roce_exporter.host.kernel.privileges import ClockState, Privileges
    from roce_exporter.model import Device, Netdev, Port
    from roce_exporter.view.host_view import View
    from roce_exporter.view.remote import LocalScrapes

MLX5_PREVENTION = 0.1
"""Seconds for which mlx5 sends pause before its watchdog stops it, where the setting is automatic."""

LONG_PREVENTION = 1.0
"""A watchdog that takes longer than this lets a storm reach other hosts."""

NOT_READ = (
    ("roce_exporter_unreadable_values", "values that cannot be read: `roce-exporter once` logs the first"),
    ("roce_exporter_unmapped_names", "names that are not in the catalogue: roce-exporter explain lists them"),
)
"""Metric, and what it counts per device."""

Found = Finding | NotChecked


def no_device_fix(modules: Collection[str] | None) -> str:
    """What to do where no device is visible, by the modules of the kernel, None if they are not seen: the likely reason first."""
    if modules is None:
        return "rdma link; load the driver's RDMA module (mlx5_ib, bnxt_re, irdma, ...), or give --path.sysfs in a container"
    if drivers := [one for family in DRIVERS for one in family.kernel_drivers if one in modules]:
        return (
            f"rdma link; {few(drivers)} is loaded: load the RDMA module of this driver (mlx5_ib, bnxt_re, irdma, ...); if it is loaded, too,"
            " another network namespace has the devices: give a pod hostNetwork, a container --path.sysfs"
        )
    return "no driver of an RDMA NIC is loaded: `lspci -nn` shows whether there is a card; in a container, give --path.sysfs"


def check_samples(
    host: View, devices: Sequence[Device], modules: Collection[str] | None = None
) -> Iterator[Found]:
    """All that follows from one collection; `modules` are those of the kernel, if they are seen."""
    if excluded := not devices and host.value("roce_exporter_devices_excluded"):
        fix = "change --device.include or --device.exclude"
        yield _wrong("devices", f"Every RDMA device is excluded ({excluded:g} of them)", fix)
    elif not devices:
        yield _wrong("devices", "No RDMA device is visible", no_device_fix(modules))
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
    line = device_line(device)
    if device.dialect:
        yield _right("devices", line, device.name)
    else:
        fix = "roce-exporter explain; roce-exporter capture records the host for a report"
        yield _wrong("devices", f"{line}: the driver is not in the catalogue", fix, device.name)
    for port in device.ports:
        place = (device.name, str(port.number))
        for netdev in port.netdevs:
            if netdev.role != "bond":
                yield from _port(host, device, port, netdev)
        if not port.netdevs and port.link_layer == "Ethernet":
            title = "The network device is not visible, so PFC, pause, link and DCB are missing"
            fix = "run it in the host's network namespace (`hostNetwork: true`, `--network=host`)"
            yield _wrong("devices", title, fix, *place)


def _port(host: View, device: Device, port: Port, netdev: Netdev) -> Iterator[Found]:
    place = (device.name, str(port.number), netdev.name)
    up = host.value("roce_link_up", netdev=netdev.name)
    if up is None:
        seen = host.value("roce_port_up", device=device.name, port=str(port.number)) is not None
        yield NotChecked(f"the state of the link of {netdev.name}", *place[:2], needed=not seen)
    elif not up:
        fix = f"ethtool {netdev.name}, then check cable and switch port"
        yield _wrong("link", "The link is down", fix, *place, side=Side.LINK)
    else:
        speed = host.value("roce_link_speed_bytes_per_second", netdev=netdev.name)
        yield _right("link", f"up, {speed * 8e-9:g} Gbit/s" if speed else "up", *place)
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
            stored = found["stored"]
            text = f"Another firmware is stored than runs ({component} {stored} instead of {running})"
            yield _wrong("firmware", text, "reboot, or reset the firmware as the vendor describes", device)


def _sources(host: View) -> Iterator[Found]:
    """One finding per network device for all of its sources that fail, and one per device for files."""
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for labels, up in host.current("roce_exporter_source_up"):
        if not up:
            of = f" of {labels['netdev']}" * bool(labels.get("netdev"))
            found[labels["device"], f"Failing sources{of}, whose series are missing"].append(labels["source"])
    for labels, number in host.current("roce_exporter_quarantined_files"):
        if number:
            found[labels["device"], "Files that keep failing"].append(f"{number:.0f} of {labels['source']}")
    for (device, title), names in found.items():
        yield _wrong("sources", f"{title}: {', '.join(names)}", f"dmesg -T | grep -i {device}", device)


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
        yield from (NotChecked(some(number, what), device) for device, number in numbers.items() if number)


def _right(check: str, title: str, device: str = "", port: str = "", netdev: str = "") -> Finding:
    return Finding(Topic.SETUP, check, title, Status.OK, device, port, netdev)


def _wrong(check: str, title: str, fix: str, *place: str, side: Side = Side.HOST) -> Finding:
    return replace(_right(check, title, *place), status=Status.DEGRADED, side=side, fix=(fix,))


SCRAPING = "scraping"
TARGETS_HELP = "add this host to Prometheus' scrape targets (deploy/prometheus)"

SHOWN = 200
"""Characters of Prometheus' own error that are shown."""


def check_local(found: LocalScrapes | None, url: str, now: float, error: str = "") -> Finding:
    """Whether the exporter of this host responds, and has been scraped; `now` in seconds since 1970."""
    if found is None:
        fix = "`systemctl enable --now roce-exporter`; --target=URL if it listens elsewhere"
        return replace(_unscraped(f"No exporter responds at {url}", fix), why=error)
    age = now - found.start if found.start else 0.0
    since = f" since it started {duration(age)} ago" if age > 0 else " since it started"
    if not found.scrapes:
        return _unscraped(f"The exporter at {url} has not been scraped{since}", TARGETS_HELP)
    every = f", one every {duration(age / found.scrapes)}" if age > 0 else ""
    return _right(
        SCRAPING, f"The exporter at {url} has been scraped {counted(found.scrapes, 'time')}{since}{every}"
    )


def check_targets(data: object, instance: str, hostname: str, url: str) -> Iterator[Finding | NotChecked]:
    """What the reply of `/api/v1/targets` says of this host: its targets with this instance, or else with its name.

    Raises:
        NetError: it is not such a reply.
    """
    active = data.get("activeTargets") if isinstance(data, dict) else None
    if not isinstance(active, list):
        raise NetError("the reply is not a list of targets")
    mine = [one for one in active if isinstance(one, dict) and _is_mine(one, instance, hostname)]
    for target in mine:
        yield _target(target, url)
    if not mine:
        wanted = f"the instance {instance!a}" if instance else f"the name {hostname!a}"
        text = f"Prometheus at {url} has {len(active)} targets, none with {wanted}"
        yield _unscraped(text, f"{TARGETS_HELP}; --target=INSTANCE if it has another name there")


def check_samples_arrive(data: object, instance: str) -> Finding:
    """Whether the query for `roce_exporter_devices` of an instance has a result."""
    result = data.get("result") if isinstance(data, dict) else None
    if result:
        return _right(SCRAPING, f"Prometheus has samples of {instance}")
    text = f"Prometheus scrapes {instance}, and has no roce_exporter_devices of it"
    return _unscraped(text, "check metric_relabel_configs, and that this target is roce_exporter")


def instance_of(data: object, instance: str, hostname: str) -> str:
    """The label `instance` of the first target of this host that is up; empty without one."""
    active = data.get("activeTargets", []) if isinstance(data, dict) else []
    mine = (one for one in active if isinstance(one, dict) and _is_mine(one, instance, hostname))
    return next((_label(one, "instance") for one in mine if one.get("health") == "up"), "")


def _is_mine(target: dict[str, object], instance: str, hostname: str) -> bool:
    found = _label(target, "instance")
    if instance:
        return found == instance
    host = found.rpartition(":")[0] or found
    return (
        bool(hostname)
        and host.partition(".")[0] == hostname.partition(".")[0]
        and "roce" in str(target).lower()
    )


def _label(target: dict[str, object], name: str) -> str:
    labels = target.get("labels")
    value = labels.get(name) if isinstance(labels, dict) else None
    return value if isinstance(value, str) else ""


def _target(target: dict[str, object], url: str) -> Finding | NotChecked:
    where = f"{_label(target, 'instance')} (job {_label(target, 'job')})"
    if target.get("health") == "up":
        return _right(SCRAPING, f"Prometheus at {url} scrapes {where}, last at {target.get('lastScrape')}")
    if target.get("health") == "unknown":
        return NotChecked(f"scrapes: Prometheus at {url} has not scraped {where} yet", needed=True)
    error = ascii(str(target.get("lastError", "")))[1:-1][:SHOWN]
    text = f"Prometheus at {url} cannot scrape {where}: {error}"
    return _unscraped(text, "`systemctl status roce-exporter`; firewall and address of the target")


def _unscraped(title: str, fix: str) -> Finding:
    return _wrong(SCRAPING, title, fix, side=Side.UNKNOWN)


PRIVILEGES = """
CAP_NET_ADMIN: optical power and temperature of transceivers, and the counters of mlx5's reporter vnic: drop-ins/optics.conf
Processes of other users: which pods, jobs and units own the RDMA objects: mount /proc without hidepid for the exporter's user (drop-ins/owners.conf)
The host's PID namespace: owners in all containers: `hostPID: true` in a pod, `--pid=host` in a container
The kernel log: messages of the RoCE drivers: CAP_SYSLOG, or `sysctl kernel.dmesg_restrict=0`
debugfs: delay drop and congestion control settings of mlx5: drop-ins/debugfs.conf
/dev/infiniband/uverbs*: limits of the device on kernels that do not report them, with owners.limits: the group of these files, or a udev rule
CAP_NET_RAW: packets of a mirror port, for `--wire.interface` only: deploy/systemd/roce-exporter-wire.service
"""
"""Each with what it adds and how to get it, in the order of the table in docs/troubleshooting.md."""


def check_privileges(found: Privileges) -> Iterator[Finding | NotChecked]:
    """One result per privilege; nothing about files that this host does not have."""
    note = ", and the service has fewer: `runuser -u roce-exporter -- roce-exporter check setup`"
    user = f"user {found.user}" if found.user else f"root{note}"
    yield _right("privileges", f"These are the privileges of {user}")
    has = (
        *("CAP_NET_ADMIN" in found.capabilities, not found.hidden_processes, found.host_processes),
        *(found.kernel_log, found.debugfs, found.uverbs, "CAP_NET_RAW" in found.capabilities),
    )
    for one, line in zip(has, PRIVILEGES.strip().splitlines(), strict=True):
        name, adds, remedy = line.split(": ", 2)
        if one:
            yield _right("privileges", f"{name}: available")
        elif one is not None:
            shown = name if name[1:2].isupper() else name[:1].lower() + name[1:]
            yield NotChecked(f"{adds}: {shown} is missing ({remedy})")


def check_clock(found: ClockState | None, error: str = "") -> Finding | NotChecked:
    """Whether a program keeps the clock in time; None with the reason why that is not known."""
    if found is None:
        return NotChecked(f"the state of the clock: {error}")
    if found.is_synchronised:
        title = f"The clock is synchronised, at most {found.most_error * 1000:.0f} ms wrong"
        return _right("clock", title)
    return Finding(
        Topic.SETUP,
        "clock",
        "No program keeps the clock in time",
        Status.DEGRADED,
        why="Storms and messages of several hosts cannot be put in order.",
        fix=("timedatectl set-ntp true",),
    )
