"""What messages of the kernel log mean: the events, each with its severity."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    """What an event says about the device at that moment."""

    FAILED = "failed"
    """It carries no traffic, or is about to lose it: an alert, and a series from the start."""
    DEGRADED = "degraded"
    """It works, but worse or not for long."""
    INFORMATION = "information"
    """Part of normal operation, or counted by the driver as well."""


class KernelEvent(NamedTuple):
    """One value of the label `event`."""

    name: str
    severity: Severity
    meaning: str
    """One line without a full stop."""


def _failed(name: str, meaning: str) -> KernelEvent:
    return KernelEvent(name, Severity.FAILED, meaning)


def _degraded(name: str, meaning: str) -> KernelEvent:
    return KernelEvent(name, Severity.DEGRADED, meaning)


def _information(name: str, meaning: str) -> KernelEvent:
    return KernelEvent(name, Severity.INFORMATION, meaning)


EVENTS = (
    _failed("firmware_fatal", "the firmware stopped or reported a fatal error"),
    _failed(
        "health_syndrome", "the firmware reported an error of its own or of the hardware, with a syndrome"
    ),
    _failed("command_timeout", "the firmware did not answer a command of the driver"),
    _failed("recovery_failed", "the driver could not reset the device and gave it up"),
    _failed("power_cycle_required", "the device works again only after a power cycle"),
    _failed("device_removed", "the PCIe slot lost its card or the link to it"),
    _failed("pcie_unreachable", "the driver cannot reach the device over PCIe"),
    _failed("pcie_aer_uncorrectable", "PCIe reported an uncorrectable error (AER), fatal or not"),
    _failed("pcie_contained", "the PCIe port disabled the link after an error (downstream port containment)"),
    _failed("slot_power_fault", "the PCIe slot reported a power fault"),
    _failed("memory_error", "memory of the device had an error that ECC could not correct"),
    _failed("tx_timeout", "a transmit queue was stuck for seconds"),
    _failed("module_unplugged", "the transceiver or cable was unplugged"),
    _failed(
        "module_power_insufficient", "the port is off because its transceiver needs more power than there is"
    ),
    _failed("module_error", "the transceiver or cable is defective, not supported or not readable"),
    _degraded("module_high_temperature", "the transceiver is too hot; the port may be switched off"),
    _degraded("device_high_temperature", "the device is too hot, or its fan failed"),
    _degraded("slot_power_insufficient", "the PCIe slot offers less power than the device needs"),
    _degraded("health_warning", "the firmware reported a problem that it does not call an error"),
    _degraded("firmware_reset", "the firmware was or will be reset"),
    _degraded("device_reset", "the driver resets the device"),
    _degraded("pcie_aer_correctable", "PCIe corrected an error (AER)"),
    _degraded("pause_storm", "the device detected a pause storm"),
    _degraded("driver_error", "the driver reported another error of the device"),
    _information(
        "command_failed", "the firmware rejected a command, for example to a register that it does not have"
    ),
    _information("device_recovered", "the driver recovered the device"),
    _information("module_plugged", "a transceiver or cable was plugged in"),
    _information("module_disabled", "the transceiver was switched off"),
    _information("link_down", "the link went down, whatever the reason"),
    _information("link_up", "the link came up"),
)
"""By severity; within one, the worst first."""

FAILED_EVENTS = tuple(one.name for one in EVENTS if one.severity is Severity.FAILED)
"""The events that have a series of 0 from the start, so that `increase()` sees the first message."""
