"""The exporter's own view of a collection: what could not be read, and how long it took. Filled by `normalise`, not by a driver."""

from __future__ import annotations

from roce_exporter.catalog.row import COUNTER, GAUGE, LEAN, STANDARD, Row

SOURCE_LABELS = ("source", "device", "netdev")
"""`netdev` is empty (that is, absent) except for sources that read each network device separately."""

SOURCE_UP = Row(
    "roce_exporter_source_up",
    GAUGE,
    "bool",
    "Whether a source of a device could be read in this collection (1). 0: it failed as a whole or was too slow. "
    "Missing: the device does not have this interface.",
    labels=SOURCE_LABELS,
    metric_set=LEAN,
    usual=1,
)
SOURCE_DURATION = Row(
    "roce_exporter_source_duration_seconds",
    GAUGE,
    "seconds",
    "Time that reading a source of a device took in this collection; for a source that has not answered, the time waited so far.",
    labels=SOURCE_LABELS,
    metric_set=STANDARD,
)
READ_ERRORS = Row(
    "roce_exporter_read_errors_total",
    COUNTER,
    "errors",
    "Values that a source of a device failed to provide: a kernel error, an empty file or invalid content. "
    "A source that fails as a whole counts once.",
    labels=SOURCE_LABELS,
    metric_set=LEAN,
    usual=0,
)
UNREADABLE = Row(
    "roce_exporter_unreadable_values",
    GAUGE,
    "values",
    "Values that a source of a device lists but that could not be read in this collection, for any reason; "
    "each of them is missing, not 0.",
    labels=SOURCE_LABELS,
    metric_set=LEAN,
    usual=0,
)
QUARANTINED = Row(
    "roce_exporter_quarantined_files",
    GAUGE,
    "files",
    "Files of a device that are temporarily not read because they kept failing.",
    labels=SOURCE_LABELS,
    metric_set=LEAN,
    usual=0,
)
UNMAPPED = Row(
    "roce_exporter_unmapped_names",
    GAUGE,
    "names",
    "Raw counter names of a device that are not in the catalogue; `roce-exporter explain` lists them.",
    labels=("device",),
    metric_set=LEAN,
    usual=0,
)
UNMAPPED_NAME = Row(
    "roce_exporter_unmapped_name_info",
    GAUGE,
    "info",
    "A raw counter name that is not in the catalogue; constant 1. At most 20 names per device.",
    labels=("device", "source", "name"),
    metric_set=LEAN,
)
MISSING = Row(
    "roce_exporter_missing_facts",
    GAUGE,
    "bool",
    "1: a port of a known driver does not report this essential fact although the interface can be read: the driver "
    "renamed or dropped the counter. No series where nothing is missing.",
    labels=("device", "port", "fact"),
    metric_set=LEAN,
)
DEVICES = Row(
    "roce_exporter_devices",
    GAUGE,
    "devices",
    "RDMA devices found on the host, excluded ones not counted.",
    labels=(),
    metric_set=LEAN,
)
DEVICES_EXCLUDED = Row(
    "roce_exporter_devices_excluded",
    GAUGE,
    "devices",
    "RDMA devices that are not read because of --device.include or --device.exclude.",
    labels=(),
    metric_set=STANDARD,
)
PORTS_WITHOUT_NETDEV = Row(
    "roce_exporter_ports_without_netdev",
    GAUGE,
    "ports",
    "Ethernet ports whose network device is not visible, for example from a separate network namespace: PFC, pause, link "
    "and DCB of these ports are not exported. Run the exporter in the host's network namespace.",
    labels=(),
    metric_set=LEAN,
    usual=0,
)
COLLECTION_DURATION = Row(
    "roce_exporter_collection_duration_seconds",
    GAUGE,
    "seconds",
    "Duration of the collection shown in this scrape.",
    labels=(),
    metric_set=STANDARD,
)
UNFINISHED = Row(
    "roce_exporter_unfinished_sources",
    GAUGE,
    "sources",
    "Sources that were not read before the scraper's timeout: their series are missing from this scrape, which is not "
    "counted as an error. 0: the scrape is complete.",
    labels=(),
    metric_set=STANDARD,
)
METRIC_SET_INFO = Row(
    "roce_exporter_metric_set_info",
    GAUGE,
    "info",
    "The set of metrics that this exporter serves (`--metrics.set`), constant 1. In lean and standard, a missing series of a "
    "metric that is marked as sparse in docs/metrics.md means its usual value.",
    labels=("set",),
    metric_set=LEAN,
)

ROWS = (
    METRIC_SET_INFO,
    SOURCE_UP,
    SOURCE_DURATION,
    READ_ERRORS,
    UNREADABLE,
    QUARANTINED,
    UNMAPPED,
    UNMAPPED_NAME,
    MISSING,
    DEVICES,
    DEVICES_EXCLUDED,
    PORTS_WITHOUT_NETDEV,
    COLLECTION_DURATION,
    UNFINISHED,
)
