"""The owners of RDMA objects of a simulated host: constructed samples in the shape of the exporter's, and of kube-state-metrics.

The kubelet gave the first VF of a host to its pod. Each host runs one Slurm job across the hosts of its cluster, a pod, a systemd unit and a kernel user. Queue pairs of the job go
into state ERR while the host's ports send pause. Enough for queries to have a result, no model of applications.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

DEVICE = re.compile(r'roce_port_up\{.*?device="(\w+)".*?\}')
PAUSED = re.compile(r'roce_pfc_transmit_pause_seconds_total\{.*?device="(\w+)".*?\} (\S+)')
VF_SLOT = re.compile(r'roce_vf_info\{.*?pci="([^"]+)"')
MEGABYTES = 1_000_000
COUNTED = (
    "cnp_handled",
    "cnp_sent",
    "ecn_marked_packets",
    "port_receive_bytes",
    "port_transmit_bytes",
    "transport_ack_timeouts",
    "transport_out_of_sequence",
    "transport_packet_sequence_errors",
    "transport_retransmitted_packets",
    "transport_retries_exceeded",
)
"""Counters of counter sets."""
UIDS = "0f3c1a52-9b1e-4a35-8d6c-00000000000{}"
NO_OWNERS = frozenset({"unknown"})
"""Clusters whose exporters have no owners."""
COUNTER_SETS = frozenset({"pfc-storm", "incast"})
"""Clusters whose NICs count by process."""
NO_KUBERNETES = frozenset({"incast"})
"""Clusters without kube-state-metrics."""


class Owned(NamedTuple):
    """What an owner has on each device."""

    name: str
    kind: str
    pairs: int
    info: dict[str, str]
    peer: str = ""


def owners(number: int) -> tuple[Owned, ...]:
    """The owners of the host with this number."""
    uid, container = UIDS.format(number), f"{number:x}" * 12
    rank = {"command": "python3", "user": "alice"}
    pod = {"command": "server", "user": "root", "pod_uid": uid, "container_id": container}
    service = {"command": "ganesha.nfsd", "user": "root", "unit": "nfs-ganesha.service"}
    return (
        Owned("slurm/4711.0", "slurm", 64, {**rank, "slurm_job": "4711", "slurm_step": "0"}),
        Owned(f"pod/{uid}/{container}", "pod", 16, pod),
        Owned("unit/nfs-ganesha.service", "unit", 4, service, "192.0.2.7"),
        Owned("kernel/nvme_rdma", "kernel", 2, {}, "192.0.2.9"),
        Owned("kernel/ib_core", "kernel", 2, {}),
    )


KEYS = ("command", "user", "pod_uid", "container_id", "slurm_job", "slurm_step", "unit")


@dataclass
class HostOwners:
    """The owners of one host over time."""

    cluster: str
    number: int
    now: float = 0.0
    """Seconds since 1970."""
    _paused: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    _counted: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def scrape(self, text: str, now: float) -> Iterator[str]:
        """Samples without labels of the target, for the host's exposition of the same moment."""
        self.now = now
        devices = sorted(set(DEVICE.findall(text)))
        if self.cluster in NO_OWNERS or not devices:
            return
        for owned in owners(self.number):
            labels = {"owner": owned.name, "kind": owned.kind, **dict.fromkeys(KEYS, ""), **owned.info}
            yield _sample("roce_owner_info", labels, 1)
        pausing = self._pausing(text)
        for pci in VF_SLOT.findall(text)[:1]:
            given = {
                "pci": pci,
                "namespace": "serving",
                "pod": f"server-{self.number}",
                "container": "server",
            }
            yield _sample("roce_owner_device_info", {**given, "resource": "nvidia.com/mlnx_vf"}, 1)
        for device in devices:
            yield from self._of_device(device, broken=device in pausing)

    def _pausing(self, text: str) -> set[str]:
        """Devices that sent pause since the last scrape."""
        found: defaultdict[str, float] = defaultdict(float)
        for device, seconds in PAUSED.findall(text):
            found[device] += float(seconds)
        risen = {device for device, total in found.items() if total > self._paused.get(device, total)}
        self._paused.update(found)
        return risen

    def _of_device(self, device: str, *, broken: bool) -> Iterator[str]:
        at = {"device": device}
        for owned in owners(self.number):
            yield from self._of_owner({**at, "owner": owned.name}, owned, broken=broken and owned.pairs > 16)
        for kind in ("ctx", "cq", "mr", "qp"):
            yield _sample("roce_owner_unseen_objects", {**at, "kind": kind}, 0)
        yield _sample("roce_owner_folded", at, 0)
        yield _sample("roce_owner_hidden_processes", at, 0)
        yield _sample("roce_owner_survey_duration_seconds", at, 1.5)
        yield _sample("roce_owner_survey_timestamp_seconds", at, self.now - 20)

    def _counters(self, at: dict[str, str], owned: Owned) -> Iterator[str]:
        """Counters of the owner's counter sets, which grow with its queue pairs."""
        for place, name in enumerate(COUNTED if self.cluster in COUNTER_SETS and owned.pairs > 2 else ()):
            key = f"{at} {name}"
            self._counted[key] += owned.pairs * (place + 1)
            yield _sample(f"roce_owner_{name}_total", {**at, "port": "1"}, self._counted[key])

    def _of_owner(self, at: dict[str, str], owned: Owned, *, broken: bool) -> Iterator[str]:
        lost = 8 * broken
        kind = "GSI" if owned.name == "kernel/ib_core" else "RC"
        for state, count in (("RTS", owned.pairs - lost), ("ERR", lost)):
            if count:
                yield _sample("roce_owner_queue_pairs", {**at, "state": state, "type": kind}, count)
        yield _sample("roce_owner_queue_pairs_in_error", at, lost)
        yield _sample("roce_owner_remote_queue_pairs", at, owned.pairs)
        yield _sample("roce_owner_completion_queues", at, owned.pairs // 2)
        yield _sample("roce_owner_memory_regions", at, owned.pairs * 2)
        yield _sample("roce_owner_memory_region_bytes", at, owned.pairs * 512 * MEGABYTES)
        yield _sample("roce_owner_contexts", at, 1)
        yield _sample("roce_owner_processes", at, min(owned.pairs, 8))
        yield from self._counters(at, owned)
        if owned.peer:
            yield _sample("roce_owner_connections", {**at, "peer": owned.peer}, owned.pairs)


def kubernetes(cluster: str, number: int) -> Iterator[str]:
    """The series of kube-state-metrics for the pod of a host."""
    if cluster not in NO_OWNERS | NO_KUBERNETES:
        pod = {"namespace": "serving", "pod": f"server-{number}", "uid": UIDS.format(number)}
        yield _sample("kube_pod_info", {**pod, "node": f"node{number}"}, 1)
        yield _sample("kube_pod_owner", {**pod, "owner_kind": "StatefulSet", "owner_name": "server"}, 1)


def _sample(name: str, labels: dict[str, str], value: float) -> str:
    written = ",".join(f'{key}="{one}"' for key, one in labels.items())
    return f"{name}{{{written}}} {value}"
