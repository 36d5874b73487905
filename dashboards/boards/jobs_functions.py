"""The row of the jobs dashboard on virtual functions (VFs): which pod has which one, and its traffic."""

from __future__ import annotations

from boards.measures import meanings, now, rate
from boards.model import Panel, Query
from boards.panels import by_name
from boards.scopes import HOST, to_host
from boards.tables import table

FIELDS = ("cluster", "job", "instance")
LABELS = (*FIELDS, "device", "netdev", "vf", "pci", "rdma_device")
VF = "(cluster, job, instance, netdev, vf)"
SLOT = "(cluster, job, instance, pci)"
GIVEN, INFO = "roce_owner_device_info", "roce_vf_info"

_FOUND = f"topk(100, max by ({', '.join(LABELS)}) ({now(INFO, HOST)}))"


def _given() -> str:
    """The namespace and pod of each PCI address. Prometheus prefixes both where its target has labels of the same names."""
    found = now(GIVEN, HOST)
    for name in ("namespace", "pod"):
        found = f'label_replace({found}, "{name}", "$1", "exported_{name}", "(.+)")'
    return f"topk by {SLOT} (1, max by (cluster, job, instance, pci, namespace, pod) ({found}))"


_FUNCTIONS = f"({_FOUND} * on {SLOT} group_left (namespace, pod) {_given()} or on {VF} {_FOUND})"


def _of_functions(expression: str) -> Query:
    summed = f"sum by {VF} ({expression})"
    return Query(f"{_FUNCTIONS} * on {VF} group_left () {summed}", form="table", instant=True)


COUNTED = {
    "received": (("roce_vf_receive_bytes_total",), "Bps"),
    "sent": (("roce_vf_transmit_bytes_total",), "Bps"),
    "dropped": (("roce_vf_receive_drops_total", "roce_vf_transmit_drops_total"), "pps"),
}
LETTERED = tuple(zip("BCD", COUNTED, strict=True))


def _functions() -> Panel:
    return table(
        "VFs and their pods",
        "At most 100. The NIC counts what each VF receives and sends; some drivers do not, and these columns are then empty. The congestion of a VF is counted by its "
        "port only. Namespace and pod need `--kubelet.pod-resources`; `rdma_device` is empty for a VF that is in the network namespace of a pod or in a virtual "
        f"machine.\n\n{meanings(INFO, GIVEN, *(name for names, _ in COUNTED.values() for name in names))}",
        ("pci", *FIELDS, "netdev", "vf", "namespace", "pod", "rdma_device", *(f"Value #{letter}" for letter, _ in LETTERED)),
        Query(_FUNCTIONS, form="table", instant=True),
        *(_of_functions(" + ".join(rate(name, HOST) for name in names)) for names, _ in COUNTED.values()),
        Query(
            f'label_replace(vector(-1), "pci", "no VFs", "", "") unless on () {now(INFO, HOST)}',
            form="table", instant=True, instead=True,
        ),
        names={f"Value #{letter}": name for letter, name in LETTERED},
        concealed=("cluster", "job"),
        overrides=(
            by_name("instance", ("links", [to_host()])),
            *(by_name(name, ("unit", unit)) for name, (_, unit) in COUNTED.items()),
        ),
        joined=True,
        sort="Value #C",
        width=24,
        height=7,
        empty="No VFs",
    )  # fmt: skip


FUNCTION_PANELS = (_functions(),)
