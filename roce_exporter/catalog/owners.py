"""Whose RDMA objects: processes, pods and jobs. From RDMA netlink and /proc, a minute's round off the scrape path.

Series per device: at most the configured number of owners. Rows with `state` have a series per state that occurs.

The counters (`_total`) are parts of the port's counters of the same name without `owner_`: what the owner's queue pairs
caused, as far as they are bound to counter sets per process (`rdma statistic qp set`). They count from the exporter's
first sight of the device. A process that ends between two rounds takes the last part of its counts with it.
"""

from __future__ import annotations

from roce_exporter.catalog import congestion, optional, port, transport
from roce_exporter.catalog.row import COUNTER, GAUGE, LEAN, Row

OWNER_LABELS = ("device", "owner")


def _gauge(name: str, unit: str, meaning: str, *more: str) -> Row:
    return Row(f"roce_owner_{name}", GAUGE, unit, meaning, (), (*OWNER_LABELS, *more), "experimental", LEAN)


QUEUE_PAIRS = _gauge(
    "queue_pairs", "objects", "Queue pairs of the owner, by state and type.", "state", "type"
)
QUEUE_PAIRS_IN_ERROR = _gauge(
    "queue_pairs_in_error",
    "objects",
    "Queue pairs of the owner in state ERR: they transfer nothing any more.",
)
REMOTE_QUEUE_PAIRS = _gauge(
    "remote_queue_pairs",
    "objects",
    "Remote queue pairs that the owner's queue pairs are connected to.",
)
COMPLETION_QUEUES = _gauge("completion_queues", "objects", "Completion queues of the owner.")
MEMORY_REGIONS = _gauge("memory_regions", "objects", "Memory regions that the owner has registered.")
MEMORY_REGION_BYTES = _gauge(
    "memory_region_bytes",
    "bytes",
    "Bytes of the memory regions that the owner has registered. Regions may overlap.",
)
CONTEXTS = _gauge("contexts", "objects", "User contexts that the owner has open.")
CONNECTIONS = _gauge(
    "connections",
    "objects",
    "Connections of the owner by the RDMA connection manager, by remote IP address.",
    "peer",
)
PROCESSES = _gauge("processes", "objects", "Processes of the owner that have RDMA objects on the device.")

OWNER_INFO = Row(
    "roce_owner_info",
    GAUGE,
    "info",
    "Who an owner is. `kind` is pod, container, slurm, unit, cgroup, process, kernel, unknown or other; always 1.",
    (),
    ("owner", "kind", "command", "user", "pod_uid", "container_id", "slurm_job", "slurm_step", "unit"),
    "experimental",
    LEAN,
)


def _of_device(name: str, unit: str, meaning: str, *more: str) -> Row:
    return Row(f"roce_owner_{name}", GAUGE, unit, meaning, (), ("device", *more), "experimental", LEAN)


FOLDED = _of_device(
    "folded",
    "owners",
    "Owners that are counted as `other` because the device has more than the configured number.",
)
UNSEEN = _of_device(
    "unseen_objects",
    "objects",
    "Objects whose process the kernel does not report here: of other PID or network namespaces, or of threads that ended.",
    "kind",
)
HIDDEN_PROCESSES = _of_device(
    "hidden_processes",
    "processes",
    "Processes with RDMA objects, by the threads that made them, of which /proc reports nothing to this process.",
)
SURVEY_SECONDS = _of_device(
    "survey_duration_seconds", "seconds", "Time that the last complete survey of the device's objects took."
)
SURVEY_TIME = _of_device(
    "survey_timestamp_seconds",
    "seconds",
    "Time at which the last complete survey ended, in seconds since 1970.",
)


_COUNTED_PER_OWNER = (
    "roce_ecn_marked_packets_total",
    "roce_cnp_sent_total",
    "roce_cnp_handled_total",
    "roce_transport_out_of_sequence_total",
    "roce_transport_packet_sequence_errors_total",
    "roce_transport_implied_naks_total",
    "roce_transport_ack_timeouts_total",
    "roce_transport_retransmitted_packets_total",
    "roce_transport_retransmitted_bytes_total",
    "roce_transport_retries_exceeded_total",
    "roce_transport_adaptive_retransmits_total",
    "roce_transport_duplicate_requests_total",
    "roce_transport_rnr_naks_received_total",
    "roce_transport_rnr_naks_sent_total",
    "roce_transport_rnr_retries_exceeded_total",
    "roce_port_receive_bytes_total",
    "roce_port_transmit_bytes_total",
    "roce_port_receive_packets_total",
    "roce_port_transmit_packets_total",
    *(row.name for row in optional.ROWS),
)
"""The port's counters that owners have, too."""


def owner_counter(of_port: Row) -> Row:
    """The owner's part of a port's counter: same unit, and the first sentence of its meaning."""
    name = of_port.name.replace("roce_", "roce_owner_", 1)
    meaning = of_port.help.partition(". ")[0].removesuffix(".")
    return Row(
        name,
        COUNTER,
        of_port.unit,
        f"{meaning}. Counts only queue pairs of the owner that are bound to counter sets.",
        (),
        (*OWNER_LABELS, "port"),
        "experimental",
        of_port.metric_set,
    )


OWNER_COUNTERS: tuple[tuple[Row, Row], ...] = tuple(
    (row, owner_counter(row))
    for row in (*congestion.ROWS, *transport.ROWS, *port.ROWS, *optional.ROWS)
    if row.name in _COUNTED_PER_OWNER
)
"""Each row of a port with the row of its owners. The spellings of the port's row name the values of a counter set."""

NEVER_FILLED = {"mlx5": ("np_", "rp_", "rx_icrc_encapsulated")}
"""Beginnings of names that the counter sets of a driver list with a 0 that is not a count, by dialect.

mlx5 fills the Q counters of a set and, where they are bound, the optional counters (`mlx5_ib_counter_update_stats`,
drivers/infiniband/hw/mlx5/counters.c); its congestion counters exist per port only.
"""

SUMMED_ON_READ = frozenset({"ionic"})
"""Dialects whose sets are added up from the queue pairs that exist when the set is read (`ionic_counter_update_stats`,
drivers/infiniband/hw/ionic/ionic_hw_stats.c): a value falls when one of them is destroyed."""


ROWS = (
    QUEUE_PAIRS,
    QUEUE_PAIRS_IN_ERROR,
    REMOTE_QUEUE_PAIRS,
    COMPLETION_QUEUES,
    MEMORY_REGIONS,
    MEMORY_REGION_BYTES,
    CONTEXTS,
    CONNECTIONS,
    PROCESSES,
    *(row for _, row in OWNER_COUNTERS),
    OWNER_INFO,
    FOLDED,
    UNSEEN,
    HIDDEN_PROCESSES,
    SURVEY_SECONDS,
    SURVEY_TIME,
)
