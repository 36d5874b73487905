"""What the helper reports of other network namespaces, and its form on the socket: one JSON document."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

MOST_BYTES = 1024 * 1024
"""Size of a document that is read."""
MOST_DEVICES = 1024
"""Devices of all namespaces that are shown."""


class NamespaceReport(NamedTuple):
    """The RDMA devices of the namespaces that were visited."""

    devices: dict[tuple[str, str], dict[str, int]]
    """Kind of object to number in use, by namespace and device."""
    failed: dict[str, str]
    """Why a namespace could not be visited, by its name."""


def encode_report(report: NamespaceReport) -> bytes:
    """The document of a report."""
    devices = [
        {"namespace": namespace, "device": device, "objects": objects}
        for (namespace, device), objects in report.devices.items()
    ]
    return json.dumps({"devices": devices, "failed": report.failed}).encode()


def decode_report(document: bytes) -> NamespaceReport:
    """The report in a document, without the devices beyond `MOST_DEVICES`.

    Raises:
        ValueError: it is no such document.
    """
    try:
        found = json.loads(document)
        devices = {
            (str(one["namespace"]), str(one["device"])): _objects(one["objects"])
            for one in found["devices"][:MOST_DEVICES]
        }
        failed = {str(name): str(why) for name, why in found["failed"].items()}
    except (TypeError, KeyError, AttributeError, RecursionError, ValueError):
        raise ValueError("the document is not one of `roce-exporter tool namespaces`") from None
    return NamespaceReport(devices, failed)


def _objects(found: dict[str, Any]) -> dict[str, int]:
    if not all(isinstance(number, int) for number in found.values()):
        raise ValueError("an object count is not a number")
    return {str(kind): number for kind, number in found.items()}
