"""What the exporter reads of devlink, the kernel's interface to a device as a whole (Documentation/networking/devlink).

A devlink instance is named by its bus and its name on it: `pci/0000:3b:00.0`, `auxiliary/mlx5_core.eth.0`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

VNIC = "vnic"
"""The reporter of mlx5 with counters of the function (Documentation/networking/devlink/mlx5.rst)."""

FIXED, RUNNING, STORED = "fixed", "running", "stored"
"""Versions of the board, of what runs now, and of what runs after the next reset."""


class HealthReporter(NamedTuple):
    """One health reporter of a devlink instance or of one of its ports."""

    name: str
    is_healthy: bool
    errors: int
    """Errors reported since the driver was loaded."""
    recoveries: int
    """Successful recoveries since then."""
    dumped: float | None = None
    """When the stored dump was taken, in seconds since 1970; None without a dump."""


class ComponentVersion(NamedTuple):
    """One version of a device. Serial numbers are not read: they identify the machine."""

    stage: str
    """`FIXED`, `RUNNING` or `STORED`."""
    component: str
    """As the driver names it: `fw.version`, `fw.psid`, `board.id`."""
    version: str


class DevlinkKernel(Protocol):
    """The part of a host that devlink describes. No method writes."""

    def devlink_reporters(self, instance: str) -> tuple[HealthReporter, ...]:
        """The health reporters of an instance and of its ports, in the kernel's order. Needs no privilege.

        Raises:
            Absent: there is no such instance, or it has no reporters.
        """

    def devlink_versions(self, instance: str) -> tuple[ComponentVersion, ...]:
        """The versions of an instance. Needs no privilege; the driver may query its firmware.

        Raises:
            Absent: there is no such instance, or its driver reports none.
        """

    def devlink_vnic(self, instance: str) -> Mapping[str, int]:
        """The numbers that the reporter `vnic` of an instance diagnoses, by the driver's names.

        Raises:
            Absent: there is no such instance, or it has no such reporter.
            PermissionError: without CAP_NET_ADMIN.
        """
