"""Which pod has which network device, from the kubelet's pod-resources API: with `--kubelet.pod-resources` only."""

from __future__ import annotations

from roce_exporter.catalog.row import GAUGE, LEAN, Row

POD_DEVICE_INFO = Row(
    "roce_owner_device_info",
    GAUGE,
    "info",
    "A network device that the kubelet gave to a container, by its PCI address, constant 1. Join `pci` with `roce_device_info` "
    "or `roce_vf_info`. Devices without a PCI address are left out: plugins that share an RDMA device number them freely.",
    (),
    ("pci", "namespace", "pod", "container", "resource"),
    "experimental",
    metric_set=LEAN,
)

ROWS = (POD_DEVICE_INFO,)
