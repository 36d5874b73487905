"""Alerts about the owners of RDMA objects, and other alerts that name the owners in their texts."""

from __future__ import annotations

from alert_scenario import EAST, PORT, PRIORITY, RECEIVE, TRANSMIT, Case, Jump, Level, Rate

DEVICE = 'device="mlx5_0"'
UID = "0f3c1a52-9b1e-4a35-8d6c-0a1b2c3d4e5f"
CONTAINER = "3f9a0c5d7e21"
SLURM = f'{DEVICE},owner="slurm/4711.0"'
POD = f'{DEVICE},owner="pod/{UID}/{CONTAINER}"'
KERNEL = f'{DEVICE},owner="kernel/ib_core"'


def always(value: float) -> Level:
    """A gauge that never changes."""
    return Level(sick=value, healthy=value)


def info(owner: str, kind: str, **known: str) -> str:
    """The series that describes an owner."""
    keys = ("command", "user", "pod_uid", "container_id", "slurm_job", "slurm_step", "unit")
    labels = {"owner": owner, "kind": kind, **dict.fromkeys(keys, ""), **known}
    return f"roce_owner_info{{{','.join(f'{key}={chr(34)}{text}{chr(34)}' for key, text in labels.items())}}}"


def pairs(owner: str) -> str:
    """The series of an owner's queue pairs."""
    return f'roce_owner_queue_pairs{{{owner},state="RTS",type="RC"}}'


SLURM_INFO = info("slurm/4711.0", "slurm", command="python3", user="alice", slurm_job="4711", slurm_step="0")
POD_INFO = info(f"pod/{UID}/{CONTAINER}", "pod", pod_uid=UID, container_id=CONTAINER * 5)
CONTROLLER = f'namespace="serving",pod="server-0",uid="{UID}",owner_kind="StatefulSet",owner_name="server",owner_is_controller="true"'
OWNERS = {
    pairs(SLURM): always(64),
    pairs(POD): always(16),
    pairs(KERNEL): always(2),
    SLURM_INFO: always(1),
    POD_INFO: always(1),
    info("kernel/ib_core", "kernel"): always(1),
}
KUBERNETES = {f"kube_pod_owner{{{CONTROLLER}}}": always(1)}
FULL = 131_072.0
FRESH = 1e9
"""A survey after the end of every test, so that its age is never a fault."""


def nearly_full(kind: str, said: str, counted: str) -> Case:
    """A device whose objects of one kind are nearly all in use."""
    return Case(
        "RoceResourcesNearlyExhausted",
        {
            f"roce_resource_{kind}{{{DEVICE}}}": Level(sick=0.95 * FULL, below=0.899 * FULL, healthy=100),
            f"roce_resource_{kind}_limit{{{DEVICE}}}": always(FULL),
        },
        name=said,
        labels=f'{DEVICE},resource="{said}"',
        background={SLURM_INFO: always(1), f"{counted}{{{SLURM}}}": always(1200)},
    )


OWNER_CASES = (
    Case(
        "RoceOwnerQueuePairsInError",
        {f"roce_owner_queue_pairs_in_error{{{SLURM}}}": Level(sick=8, below=0)},
        labels=SLURM,
        background={SLURM_INFO: always(1)},
    ),
    Case(
        "RoceOwnerQueuePairsInError",
        {f'roce_owner_queue_pairs_in_error{{{DEVICE},owner="unknown"}}': Level(sick=1, below=0)},
        name="of an unknown owner",
        labels=f'{DEVICE},owner="unknown"',
        background={info("unknown", "unknown"): always(1)},
    ),
    Case(
        "RoceResourcesNearlyExhausted",
        {
            f"roce_resource_qp{{{DEVICE}}}": Level(sick=0.95 * FULL, below=0.899 * FULL, healthy=100),
            f"roce_resource_qp_limit{{{DEVICE}}}": always(FULL),
        },
        labels=f'{DEVICE},resource="queue pairs"',
        background=OWNERS,
    ),
    nearly_full("cq", "completion queues", "roce_owner_completion_queues"),
    nearly_full("mr", "memory regions", "roce_owner_memory_regions"),
    Case(
        "RoceOwnerSurveyStale",
        {f"roce_owner_survey_timestamp_seconds{{{DEVICE}}}": Level(sick=0, below=1621, healthy=FRESH)},
        labels=DEVICE,
    ),
    Case(
        "RoceOwnersHidden",
        {f"roce_owner_hidden_processes{{{DEVICE}}}": Level(sick=3, below=0)},
        labels=DEVICE,
        sick=90,
    ),
    Case(
        "RoceOwnersHidden",
        {f'roce_owner_unseen_objects{{{DEVICE},kind="qp"}}': Level(sick=5, below=0)},
        name="in another namespace",
        labels=DEVICE,
        sick=90,
    ),
    Case(
        "RoceSourceBroken",
        {f'roce_exporter_source_up{{source="owners",{DEVICE}}}': Level(0, 1, 1)},
        name="of owners",
        labels=f'source="owners",{DEVICE}',
    ),
    Case(
        "RocePfcStormTransmitted",
        {f"roce_pfc_storm_active{{{TRANSMIT}}}": Level(sick=1, below=0)},
        name="with the owners of its queue pairs",
        labels=TRANSMIT,
        background={**OWNERS, **KUBERNETES},
    ),
    Case(
        "RocePfcStormFabricWide",
        {f"roce_pfc_storm_active{{{RECEIVE}}}": Level(sick=1)},
        name="with the paused jobs",
        labels='direction="receive"',
        sick_hosts=EAST[:3],
        fabric=True,
        background={"roce_exporter_devices": Level(sick=1, healthy=1), **OWNERS},
    ),
    Case(
        "RoceTransportRetriesExceeded",
        {f"roce_transport_retries_exceeded_total{{{PORT}}}": Jump(sick=4, below=0)},
        name="with owners, without kube-state-metrics",
        look=5,
        background=OWNERS,
    ),
    Case(
        "RoceLosslessPriorityDrops",
        {f"roce_buffer_discards_total{{{PRIORITY}}}": Rate(sick=2, below=0), f"roce_pfc_enabled{{{PRIORITY}}}": always(1)},
        name="of a job",
        labels=PRIORITY,
        background={pairs(SLURM): always(64), SLURM_INFO: always(1)},
    ),
)  # fmt: skip
