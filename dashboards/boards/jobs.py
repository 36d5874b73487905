"""Jobs: whose RDMA traffic is behind the ports, and which job suffers."""

from __future__ import annotations

from boards.jobs_hosts import ACROSS_PANELS, BY_HOST_PANELS, LIMIT_PANELS, SURVEY_PANELS, WHO_PANELS
from boards.jobs_owners import FIRST_PANELS, OVER_TIME_PANELS
from boards.jobs_series import OF_JOBS, most, rate_of_workloads
from boards.measures import meanings, now, rate
from boards.model import Board, Panel, Query, Row, cell, nothing
from boards.panels import by_name, lines
from boards.scopes import HOST, alerts, to_host
from boards.tables import table

SETS = (
    "Needs counter sets (mlx5, ionic) that an administrator switches on: `rdma statistic qp set link DEVICE/PORT auto type,pid on`. They are part of the port's "
    "counters: never add both."
)
NOT_COUNTED = "Not counted by workload: no counter sets"


def _counted(title: str, reading: str, unit: str, *series: tuple[str, str], **place: int) -> Panel:
    """The five workloads with the highest rates of each counter."""
    queries = [
        Query(
            most(5, rate_of_workloads(f"roce_owner_{name}_total")),
            f"{{{{workload}}}} {said}".strip(),
            proof="pfc-storm",
        )
        for name, said in series
    ]
    explained = meanings(*(f"roce_owner_{name}_total" for name, _ in series))
    return lines(title, f"{reading} {SETS}\n\n{explained}", unit, *queries, empty=NOT_COUNTED, **place)


COUNTER_PANELS = (
    _counted(
        "CNPs of workloads",
        "Handled: the workload sends through a congested point and is slowed down. Sent: it receives marked packets.",
        "pps",
        ("cnp_handled", "handled"),
        ("cnp_sent", "sent"),
    ),
    _counted(
        "Marked packets of workloads",
        "Packets that passed a full queue of a switch.",
        "pps",
        ("ecn_marked_packets", ""),
    ),
    _counted(
        "Loss and timeouts on this host",
        "Normally zero. Out of sequence: packets to the workload were lost; NAKs: packets that it sent.",
        "cps",
        ("transport_out_of_sequence", "out of sequence"),
        ("transport_packet_sequence_errors", "sequence NAKs"),
        ("transport_ack_timeouts", "timeouts"),
        ("transport_retries_exceeded", "retries exceeded"),
    ),
    _counted(
        "Retransmissions of workloads",
        "Packets that were sent again.",
        "pps",
        ("transport_retransmitted_packets", "retransmitted"),
    ),
    _counted(
        "Received by workloads",
        "Who uses the port.",
        "Bps",
        ("port_receive_bytes", ""),
    ),
    _counted(
        "Sent by workloads",
        "Who uses the port.",
        "Bps",
        ("port_transmit_bytes", ""),
    ),
)  # fmt: skip

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
    return cell(f"{_FUNCTIONS} * on {VF} group_left () {summed}")


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
        cell(_FUNCTIONS),
        *(_of_functions(" + ".join(rate(name, HOST) for name in names)) for names, _ in COUNTED.values()),
        nothing("pci", "no VFs", now(INFO, HOST)),
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

BOARD = Board(
    "roce-jobs",
    "RoCE / Jobs",
    "Processes, pods and jobs behind the counters of ports. Needs the recording rules of alerts/ and dashboards/.",
    OF_JOBS,
    (
        Row("Now", "whose job is on a faulty port, and is it the job's fault", FIRST_PANELS),
        Row("Over time", "since when: the worst workloads of the range", OVER_TIME_PANELS),
        Row("Across hosts", "hosts of one job should be alike", BY_HOST_PANELS),
        Row("One host: workloads", "the host that is chosen above", ACROSS_PANELS),
        Row(
            "One host: congestion and loss", "which workload, where the NIC counts by process", COUNTER_PANELS
        ),
        Row("One host: owners", "which processes, pods and units are behind a workload", WHO_PANELS),
        Row("One host: virtual functions", "which pod has which VF, and what it sends", FUNCTION_PANELS),
        Row("Limits", "a device without free objects refuses new connections", LIMIT_PANELS),
        Row("Hosts and surveys", "what is missing here is missing above", SURVEY_PANELS),
    ),
    (alerts(HOST),),
)
