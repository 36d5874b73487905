"""How well the exporter sees: what was lost, and what it cost. Filled by `normalise`, not from a driver."""

from __future__ import annotations

from roce_exporter.catalog.row import COUNTER, GAUGE, Row

SOURCE_LABELS = ("source", "device", "netdev")
"""`netdev` is empty, that is not there, but for sources that ask each network device on its own."""

SOURCE_UP = Row(
    "roce_exporter_source_up",
    GAUGE,
    "bool",
    "Whether a source of a device answered in this collection. 0: it failed as a whole or was too slow. "
    "Missing: the device does not have this interface.",
    labels=SOURCE_LABELS,
)
SOURCE_DURATION = Row(
    "roce_exporter_source_duration_seconds",
    GAUGE,
    "seconds",
    "How long a source of a device took in this collection; of one that does not answer, how long it has been waited for.",
    labels=SOURCE_LABELS,
)
READ_ERRORS = Row(
    "roce_exporter_read_errors_total",
    COUNTER,
    "errors",
    "Values that a source of a device should have given and did not: an error of the kernel, an empty file or garbage. "
    "A source that fails as a whole counts one.",
    labels=SOURCE_LABELS,
)
UNREADABLE = Row(
    "roce_exporter_unreadable_values",
    GAUGE,
    "values",
    "Values that a source of a device lists and that could not be had in this collection, whatever the reason; "
    "each of them is missing, not 0.",
    labels=SOURCE_LABELS,
)
QUARANTINED = Row(
    "roce_exporter_quarantined_files",
    GAUGE,
    "files",
    "Files of a device that are left alone for a while because they kept failing.",
    labels=SOURCE_LABELS,
)
UNMAPPED = Row(
    "roce_exporter_unmapped_names",
    GAUGE,
    "names",
    "Raw counter names of a device that no row of the catalogue knows; `roce-exporter explain` lists them.",
    labels=("device",),
)
UNMAPPED_NAME = Row(
    "roce_exporter_unmapped_name_info",
    GAUGE,
    "info",
    "A raw counter name that no row of the catalogue knows; always 1. At most 20 names per device.",
    labels=("device", "source", "name"),
)
MISSING = Row(
    "roce_exporter_missing_facts",
    GAUGE,
    "bool",
    "1: a port of a known driver does not report this essential fact, although the interface answers: the driver renamed "
    "or dropped the counter. No series where nothing is missing.",
    labels=("device", "port", "fact"),
)
DEVICES = Row(
    "roce_exporter_devices",
    GAUGE,
    "devices",
    "RDMA devices found on the host, without excluded ones.",
    labels=(),
)
DEVICES_EXCLUDED = Row(
    "roce_exporter_devices_excluded",
    GAUGE,
    "devices",
    "RDMA devices left alone because of --device.include or --device.exclude.",
    labels=(),
)
PORTS_WITHOUT_NETDEV = Row(
    "roce_exporter_ports_without_netdev",
    GAUGE,
    "ports",
    "Ethernet ports whose network device cannot be seen, as from a network namespace of its own: PFC, pause, link and "
    "DCB of these ports are not told. Give the exporter the host's network.",
    labels=(),
)
COLLECTION_DURATION = Row(
    "roce_exporter_collection_duration_seconds",
    GAUGE,
    "seconds",
    "How long the collection that this scrape shows took.",
    labels=(),
)

ROWS = (
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
)
