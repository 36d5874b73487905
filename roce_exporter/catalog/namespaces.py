"""RDMA devices in other network namespaces: whether they are shared, how many are hidden, and what the helper reports of them."""

from __future__ import annotations

from roce_exporter.catalog.row import GAUGE, STANDARD, Row


def _gauge(name: str, unit: str, meaning: str, *labels: str) -> Row:
    return Row(name, GAUGE, unit, meaning, (), labels, "experimental", STANDARD)


SHARED = _gauge(
    "roce_rdma_namespaces_shared",
    "bool",
    "Whether every network namespace sees all RDMA devices (1, the kernel's default) or only its own (0, `rdma system set netns "
    "exclusive`).",
)
HIDDEN_DEVICES = _gauge(
    "roce_exporter_rdma_devices_unseen",
    "devices",
    "RDMA devices of other network namespaces that neither the exporter sees nor its helper (`roce-exporter namespaces`). "
    "Missing if it is unknown: in mode exclusive without the module ib_uverbs.",
)
UNVISITED = _gauge(
    "roce_exporter_rdma_namespaces_unseen",
    "namespaces",
    "Network namespaces that the helper could not visit.",
)
NAMESPACE_OBJECTS = _gauge(
    "roce_namespace_objects",
    "objects",
    "Objects in use on an RDMA device of another network namespace, by kind: qp, cq, mr and so on. From the helper.",
    "netns",
    "device",
    "kind",
)

ROWS = (SHARED, HIDDEN_DEVICES, UNVISITED, NAMESPACE_OBJECTS)
