"""What this process may not read and what that would add, the host's clock, and whether the samples of this host arrive anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.checks.finding import Finding, NotChecked, Status, Topic
from roce_exporter.net import NetError
from roce_exporter.words import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.host.kernel.privileges import ClockState, Privileges
    from roce_exporter.view.from_exporter import LocalScrapes

TARGETS_HELP = "add this host to Prometheus' scrape targets (deploy/prometheus)"

SHOWN = 200
"""Characters of Prometheus' own error that are shown."""


def check_local(found: LocalScrapes | None, url: str, now: float, error: str = "") -> Finding:
    """Whether the exporter of this host responds, and has been scraped; `now` in seconds since 1970."""
    if found is None:
        text = f"No exporter responds at {url} ({error})."
        return _scraping(
            Status.DEGRADED,
            text,
            "`systemctl status roce-exporter`; --target=URL if it listens elsewhere",
        )
    age = now - found.start if found.start else 0.0
    since = f" since it started {duration(age)} ago" if age > 0 else " since it started"
    if not found.scrapes:
        return _scraping(
            Status.DEGRADED,
            f"The exporter at {url} has not been scraped{since}.",
            TARGETS_HELP,
        )
    every = f", one every {duration(age / found.scrapes)}" if age > 0 else ""
    return _scraping(
        Status.OK,
        f"The exporter at {url} has been scraped {found.scrapes} times{since}{every}.",
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
        text = f"Prometheus at {url} has {len(active)} targets, none with {wanted}."
        yield _scraping(
            Status.DEGRADED, text, f"{TARGETS_HELP}; --target=INSTANCE if it has another name there"
        )


def check_samples_arrive(data: object, instance: str) -> Finding:
    """Whether the query for `roce_exporter_devices` of an instance has a result."""
    result = data.get("result") if isinstance(data, dict) else None
    if result:
        return _scraping(Status.OK, f"Prometheus has samples of {instance}.")
    return _scraping(
        Status.DEGRADED,
        f"Prometheus scrapes {instance}, and has no roce_exporter_devices of it.",
        "check metric_relabel_configs, and that this target is roce_exporter",
    )


def instance_of(data: object, instance: str, hostname: str) -> str:
    """The label `instance` of the first target of this host that is up; empty without one."""
    active = data.get("activeTargets", []) if isinstance(data, dict) else []
    for target in active:
        if isinstance(target, dict) and target.get("health") == "up" and _is_mine(target, instance, hostname):
            return _label(target, "instance")
    return ""


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
        return _scraping(
            Status.OK,
            f"Prometheus at {url} scrapes {where}, last at {target.get('lastScrape')}.",
        )
    if target.get("health") == "unknown":
        return NotChecked(f"scrapes: Prometheus at {url} has not scraped {where} yet", needed=True)
    error = ascii(str(target.get("lastError", "")))[1:-1][:SHOWN]
    text = f"Prometheus at {url} cannot scrape {where}: {error}."
    return _scraping(
        Status.DEGRADED,
        text,
        "`systemctl status roce-exporter`; firewall and address of the target",
    )


def _scraping(status: Status, title: str, fix: str = "") -> Finding:
    return Finding(Topic.SETUP, "scraping", title.removesuffix("."), status, fix=(fix,) if fix else ())


ROOT = 0


def check_privileges(found: Privileges) -> Iterator[Finding | NotChecked]:
    """One result per privilege, in the order of the table in docs/troubleshooting.md."""
    yield _whose(found)
    net_admin = "CAP_NET_ADMIN" in found.capabilities
    yield _privilege(
        net_admin,
        "CAP_NET_ADMIN",
        "optical power and temperature of transceivers, and the counters of mlx5's reporter vnic",
        "deploy/systemd/drop-ins/optics.conf",
    )
    yield _privilege(
        not found.hidden_processes,
        "Processes of other users",
        "which pods, jobs and units own the RDMA objects",
        "mount /proc without hidepid for the exporter's user (deploy/systemd/drop-ins/owners.conf)",
    )
    yield _privilege(
        found.host_processes,
        "The host's PID namespace",
        "owners in all containers",
        "`hostPID: true` in a pod, `--pid=host` in a container",
    )
    yield _privilege(
        found.kernel_log,
        "The kernel log",
        "messages of the RoCE drivers",
        "CAP_SYSLOG, or `sysctl kernel.dmesg_restrict=0`",
    )
    yield _privilege(
        found.debugfs,
        "debugfs",
        "delay drop and congestion control settings of mlx5",
        "deploy/systemd/drop-ins/debugfs.conf",
    )
    if found.uverbs is not None:
        yield _privilege(
            found.uverbs,
            "/dev/infiniband/uverbs*",
            "limits of the device on kernels that do not report them, with owners.limits",
            "the group of these files, or a udev rule",
        )
    yield _privilege(
        "CAP_NET_RAW" in found.capabilities,
        "CAP_NET_RAW",
        "packets of a mirror port, for `--wire.interface` only",
        "deploy/systemd/roce-exporter-wire.service",
    )


def _whose(found: Privileges) -> Finding:
    note = ""
    if found.user == ROOT:
        note = "; the service has fewer privileges: run this as its user (`sudo -u roce-exporter`)"
    user = "root" if found.user == ROOT else f"user {found.user}"
    return Finding(Topic.SETUP, "privileges", f"These are the privileges of {user}{note}", Status.OK)


def _privilege(has: bool, name: str, adds: str, remedy: str) -> Finding | NotChecked:
    if has:
        return Finding(Topic.SETUP, "privileges", f"{name}: available", Status.OK)
    return NotChecked(f"{adds}: {name} is missing ({remedy})")


def check_clock(found: ClockState | None, error: str = "") -> Finding | NotChecked:
    """Whether a program keeps the clock in time; None with the reason why that is not known."""
    if found is None:
        return NotChecked(f"the state of the clock: {error}")
    if found.is_synchronised:
        title = f"The clock is synchronised, at most {found.most_error * 1000:.0f} ms wrong"
        return Finding(Topic.SETUP, "clock", title, Status.OK)
    return Finding(
        Topic.SETUP,
        "clock",
        "No program keeps the clock in time",
        Status.DEGRADED,
        why="Storms and messages of several hosts cannot be put in order.",
        fix=("timedatectl", "chronyc tracking"),
    )
