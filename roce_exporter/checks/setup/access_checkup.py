"""What this process may not read and what that would add, and the host's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.checks.finding import Finding, NotChecked, Status, Topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.host.kernel.clock_state import ClockState
    from roce_exporter.host.kernel.privileges import Privileges

ROOT = 0


def check_privileges(found: Privileges) -> Iterator[Finding | NotChecked]:
    """One result per privilege, in the order of the table in README.md."""
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
            "limits of the device on kernels that do not report them, with --owners.limits",
            "the group of these files, or a udev rule",
        )
    yield _privilege(
        "CAP_NET_RAW" in found.capabilities,
        "CAP_NET_RAW",
        "packets of a mirror port, for `wire --interface` only",
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
