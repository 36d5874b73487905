"""Messages of the kernel log about RDMA devices. Filled by `surroundings.kernel_log_follower`, not by a driver."""

from __future__ import annotations

from roce_exporter.catalog.row import COUNTER, GAUGE, LEAN, Row

KERNEL_LOG_EVENTS = Row(
    "roce_kernel_log_events_total",
    COUNTER,
    "messages",
    "Messages of the kernel log about a device since the exporter started, by event: firmware_fatal, command_timeout, module_unplugged "
    "and so on (catalog/kernel_events.py). One fault may write several. Events of severity failed begin at 0; the others "
    "are missing until their first message. A device that was removed keeps its series.",
    labels=("device", "event"),
    stability="experimental",
    metric_set=LEAN,
    usual=0,
)
KERNEL_LOG_LOST = Row(
    "roce_kernel_log_lost_total",
    COUNTER,
    "messages",
    "Messages of the kernel log, from any driver, that were overwritten before the exporter read them.",
    labels=(),
    stability="experimental",
)
KERNEL_LOG_READABLE = Row(
    "roce_kernel_log_readable",
    GAUGE,
    "bool",
    "Whether the kernel log is followed (1). 0: the exporter has no permission (`kernel.dmesg_restrict` without CAP_SYSLOG), no "
    "/dev/kmsg, or reading fails; then no series of roce_kernel_log_events_total changes.",
    labels=(),
    stability="experimental",
    metric_set=LEAN,
)

ROWS = (KERNEL_LOG_EVENTS, KERNEL_LOG_LOST, KERNEL_LOG_READABLE)
