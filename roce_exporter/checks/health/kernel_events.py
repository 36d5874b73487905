"""Which cause an event of the kernel log supports (`roce_kernel_log_events_total`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.checks.health import port_causes, traffic_causes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roce_exporter.checks.health.sign import Cause

DEVICE_EVENTS: Mapping[str, Cause] = {
    **dict.fromkeys(
        ("firmware_fatal", "health_syndrome", "memory_error", "recovery_failed", "power_cycle_required"),
        port_causes.DEVICE_ERROR,
    ),
    **dict.fromkeys(("command_timeout", "tx_timeout", "pcie_unreachable"), port_causes.DRIVER_NOT_RESPONDING),
    **dict.fromkeys(
        ("health_warning", "firmware_reset", "device_reset", "driver_error"), port_causes.DEVICE_WARNING
    ),
    **dict.fromkeys(
        ("slot_power_fault", "slot_power_insufficient", "module_power_insufficient"),
        port_causes.POWER_INSUFFICIENT,
    ),
    **dict.fromkeys(("module_unplugged", "module_error"), port_causes.MODULE_FAULT),
    **dict.fromkeys(("module_high_temperature", "device_high_temperature"), port_causes.TOO_HOT),
    "device_removed": port_causes.DEVICE_VANISHED,
    "pcie_contained": port_causes.PCIE_FATAL,
    "pcie_aer_uncorrectable": port_causes.PCIE_ERRORS,
    "pause_storm": traffic_causes.SLOW_RECEIVER,
}
"""By name of the event. Left out: corrected PCIe errors, which are judged by their number, and what is part of normal operation."""
