"""devlink of a device: health reporters, versions, counters of mlx5's reporter `vnic`.

Read once a minute (Documentation/networking/devlink/devlink-health.rst, mlx5.rst). Series per device: three per name of a
reporter (mlx5 has five names), one per version (mlx5 has five), and with CAP_NET_ADMIN up to fourteen of `vnic`. The metrics of
`vnic` have the driver's own names, as `devlink health diagnose DEV reporter vnic` prints them.
"""

from __future__ import annotations

from roce_exporter.catalog.row import ANY, COUNTER, GAUGE, LEAN, STANDARD, MetricSet, Row, Spelling, spelt
from roce_exporter.catalog.windows_names import win_vf

DEVICE = ("device",)
REPORTER_LABELS = ("device", "reporter")

DEVLINK_STATE = Row(
    "roce_devlink_health_state",
    GAUGE,
    "state",
    "State of a health reporter of the device or of its ports: 0 healthy, 1 an error that has not been recovered from.",
    (spelt(ANY, "devlink", "{reporter} state"),),
    REPORTER_LABELS,
    "experimental",
    metric_set=LEAN,
    usual=0,
)

DEVLINK_INFO_ROW = Row(
    "roce_devlink_info",
    GAUGE,
    "info",
    "A version that the driver reports by devlink, constant 1. `stage` is fixed (the board), running, or stored (runs after the next "
    "reset). Serial numbers are not exported.",
    (spelt(ANY, "devlink_info", "{stage} {component} {version}"),),
    ("device", "stage", "component", "version"),
    "experimental",
)

VNIC_READABLE = Row(
    "roce_devlink_vnic_readable",
    GAUGE,
    "bool",
    "Whether the exporter may read the reporter vnic; 0: it lacks CAP_NET_ADMIN, and the other roce_devlink_vnic_* series are missing.",
    (spelt(ANY, "devlink_vnic", "readable"),),
    DEVICE,
    "experimental",
    metric_set=STANDARD,
)


def _count(name: str, unit: str, meaning: str, raw: str, metric_set: MetricSet) -> Row:
    spelling = spelt(ANY, "devlink", f"{{reporter}} {raw}")
    return Row(
        f"roce_devlink_health_{name}_total",
        COUNTER,
        unit,
        meaning,
        (spelling,),
        REPORTER_LABELS,
        "experimental",
        metric_set,
        usual=0,
    )


def _vnic(raw: str, unit: str, meaning: str, bits: int = 32, *others: Spelling, fault: bool = True) -> Row:
    name = f"roce_devlink_vnic_{raw}_total"
    spellings = (spelt("mlx5", "devlink_vnic", raw, bits=bits), *others)
    if not fault:
        return Row(name, COUNTER, unit, meaning, spellings, DEVICE, "experimental")
    return Row(name, COUNTER, unit, meaning, spellings, DEVICE, "experimental", STANDARD, usual=0)


def _vnic_now(name: str, unit: str, meaning: str, raw: str, times: int = 1) -> Row:
    spelling = spelt("mlx5", "devlink_vnic", raw, times=times)
    return Row(f"roce_devlink_vnic_{name}", GAUGE, unit, meaning, (spelling,), DEVICE, "experimental")


ROWS = (
    DEVLINK_STATE,
    _count(
        "errors",
        "errors",
        "Errors that the reporter has reported since the driver was loaded.",
        "errors",
        LEAN,
    ),
    _count(
        "recoveries",
        "recoveries",
        "Errors that the driver has recovered from since it was loaded.",
        "recoveries",
        STANDARD,
    ),
    Row(
        "roce_devlink_health_last_dump_timestamp_seconds",
        GAUGE,
        "seconds",
        "Time of the dump that the reporter has stored for analysis, in seconds since 1970. Missing without a dump.",
        (spelt(ANY, "devlink", "{reporter} dumped"),),
        REPORTER_LABELS,
        "experimental",
        metric_set=STANDARD,
    ),
    DEVLINK_INFO_ROW,
    VNIC_READABLE,
    _vnic_now(
        "total_error_queues",
        "queues",
        "Queues of the function in an error state, because of an asynchronous error or a command that failed.",
        "total_error_queues",
    ),
    _vnic(
        "send_queue_priority_update_flow",
        "updates",
        "Changes of the priority or service level of a queue pair or send queue.",
        fault=False,
    ),
    _vnic(
        "cq_overrun",
        "events",
        "Completion queues that entered an error state because they overflowed.",
        32,
        win_vf("CQ Overrun"),
    ),
    _vnic("async_eq_overrun", "events", "Overflows of an event queue for asynchronous events."),
    _vnic("comp_eq_overrun", "events", "Overflows of an event queue for completions."),
    _vnic(
        "quota_exceeded_command", "commands", "Firmware commands that failed because a quota was exceeded."
    ),
    _vnic("invalid_command", "commands", "Firmware commands that failed for any other reason."),
    _vnic(
        "nic_receive_steering_discard",
        "packets",
        "Received packets that were discarded because no entry of a flow table matched.",
        64,
    ),
    _vnic(
        "generated_pkt_steering_fail",
        "packets",
        "Packets of the function that failed in flow steering unexpectedly.",
        64,
        win_vf("Generated Packets dropped due to steering failure"),
    ),
    _vnic(
        "handled_pkt_steering_fail",
        "packets",
        "Packets handled by the function that failed in flow steering unexpectedly, including the switch inside the NIC for "
        "the function that manages it.",
        64,
        win_vf("Handled Packets dropped due to steering failure"),
    ),
    _vnic(
        "bar_uar_access",
        "accesses",
        "Accesses to the doorbell pages (UAR) of the function over PCIe.",
        fault=False,
    ),
    _vnic(
        "odp_local_triggered_page_fault",
        "faults",
        "Page faults of on-demand paging that this host triggered.",
    ),
    _vnic(
        "odp_remote_triggered_page_fault", "faults", "Page faults of on-demand paging that a peer triggered."
    ),
    _vnic_now(
        "icm_bytes",
        "bytes",
        "Host memory that the function uses for its own context (ICM).",
        "icm_consumption",
        times=4096,
    ),
)
