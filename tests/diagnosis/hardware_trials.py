"""Trials on real NICs (`hardware/SOURCES.md`) as recorded hosts: a quiet minute, the fault, a sample every 5 s."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from built_host import Incident, incident_history
from fault_histories import recorded_history

from roce_exporter.checks.finding import Finding
from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.host.recorded.recorded import play_recording
from roce_exporter.host.recorded.tree import Tree
from roce_exporter.view.host_view import History
from roce_exporter.words import word_list

HERE = Path(__file__).with_name("hardware")
QUIET, APART, AFTER = 60, 5, 15
"""Seconds before the fault, between two samples, and after the end of the request."""
EPOCH = 1_790_000_000
FILES = frozenset(
    word_list("""
    duplicate_request implied_nak_seq_err lifespan local_ack_timeout_err np_cnp_sent
    np_ecn_marked_roce_packets out_of_buffer out_of_sequence packet_seq_err req_cqe_error
    req_cqe_flush_error req_remote_access_errors req_remote_invalid_request resp_cqe_error
    resp_cqe_flush_error resp_local_length_error resp_remote_access_errors rnr_nak_retry_err
    roce_adp_retrans roce_adp_retrans_to roce_slow_restart roce_slow_restart_cnps roce_slow_restart_trans
    rp_cnp_handled rp_cnp_ignored rx_atomic_requests rx_icrc_encapsulated rx_read_requests
    rx_write_requests
    """)
)
NEWER = frozenset({"req_transport_retries_exceeded", "req_rnr_retries_exceeded"})
"""Files that only some drivers have; absent is not 0."""
DEVICE = {
    "state": "4: ACTIVE",
    "phys_state": "5: LinkUp",
    "rate": "100 Gb/sec (4X EDR)",
    "link_layer": "Ethernet",
    "gids/1": "0000:0000:0000:0000:0000:ffff:0a00:0001",
    "gid_attrs/types/1": "RoCE v2",
    "gid_attrs/ndevs/1": "eth0",
}

Step = tuple[float, str, int]
"""Seconds after the request, counter, and by how much it rises."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One row of the scoreboard: one side of a trial, the truth, and what was predicted."""

    dataset: str
    name: str
    """The class of the fault."""
    trial: str
    side: str
    parameters: str
    truth: str
    within: str
    predicted: str
    seconds: float
    steps: tuple[Step, ...]
    older: bool
    """Whether the driver lacks the newer files."""
    busy: bool = False
    """Whether other queue pairs of the port carry traffic, which the source does not have."""
    missed: str = ""
    """What the rules said first in the first run of the row, where it was wrong."""

    @property
    def key(self) -> str:
        """For the name of a test."""
        of_trial = (self.dataset, self.name, self.parameters.replace(" ", ","), self.trial, self.side)
        return "-".join(of_trial + ("busy",) * self.busy)

    def is_said(self, finding: Finding | None, wanted: str) -> bool:
        """Whether this first finding is what `wanted` says."""
        if wanted == "nothing":
            return finding is None
        side, _, names = wanted.partition(": ")
        return finding is not None and finding.side.value == side and finding.check in names.split("|")


def load_trials(batch: int = 1) -> list[Trial]:
    """Every row of `rows.tsv` of this batch with its counters."""
    moved: dict[tuple[str, ...], dict[str, int]] = {}
    seconds: dict[tuple[str, ...], float] = {}
    for row in _table("trials.tsv"):
        key = row["dataset"], row["class"], row["trial"], row["side"], row["parameters"]
        seconds[key] = float(row["seconds_to_end"] or 0)
        if row["counter"] != "-":
            moved.setdefault(key, {})[row["counter"]] = int(row["delta"])
    timed: dict[tuple[str, str], list[Step]] = {}
    for row in _table("series.tsv"):
        step = float(row["seconds"]), row["counter"], int(row["delta"])
        timed.setdefault((row["dataset"], row["trial"]), []).append(step)
    found = []
    for row in _table("rows.tsv"):
        if int(row["batch"]) != batch:
            continue
        key = row["dataset"], row["class"], row["trial"], row["side"], row["parameters"]
        at_end = [(seconds[key], name, delta) for name, delta in moved.get(key, {}).items()]
        steps = timed.get(key[:1] + key[2:3]) or at_end  # type: ignore[call-overload]
        older = (
            row["dataset"].startswith(("live_peer", "ack_timeout", "propagation"))
            and row["side"] == "requester"
        )
        wanted = row["truth"], row["within"], row["predicted"]
        seen = row["host"] == "busy", row["missed"]
        found.append(Trial(*key, *wanted, seconds[key], tuple(steps), older, *seen))
    return found


def _table(name: str) -> Iterator[Mapping[str, str]]:
    with (HERE / name).open(newline="") as file:
        yield from csv.DictReader(file, delimiter="\t")


async def trial_history(trial: Trial, until: float | None = None) -> History:
    """The samples of this host, up to this many seconds after the request; of a busy one, ten minutes with the fault in their middle."""
    if trial.busy:
        return await incident_history(_beside_traffic(trial))
    end = trial.seconds + AFTER if until is None else until
    tree = Tree()
    for number in range(int((QUIET + end) // APART) + 1):
        _moment(tree, trial, number)
    return await recorded_history(play_recording(tree, trial.key))


def _beside_traffic(trial: Trial) -> Incident:
    """The increments on a port of `built_host`, from second 290 on."""
    burst = {}
    for name in {name for _, name, _ in trial.steps}:
        of_name = [(seconds, delta) for seconds, one, delta in trial.steps if one == name]
        begin, end = min(of_name)[0], max(of_name)[0]
        burst[f"hw/{name}"] = (float(sum(delta for _, delta in of_name)), 290 + begin, max(end - begin, 0.1))
    without = tuple(f"hw/{name}" for name in NEWER) if trial.older else ()
    return Incident(
        trial.key, trial.dataset, "fault", "mlx5", trial.truth, trial.predicted, burst=burst, without=without
    )


def _moment(tree: Tree, trial: Trial, number: int) -> None:
    now = number * APART
    values = dict.fromkeys(FILES if trial.older else FILES | NEWER, 0)
    for seconds, name, delta in trial.steps:
        if QUIET + seconds <= now:
            values[name] += delta
    device = f"{number}/sys/class/infiniband/mlx5_0"
    texts = {f"{device}/ports/1/{name}": text for name, text in DEVICE.items()}
    texts |= {f"{device}/ports/1/hw_counters/{name}": str(value) for name, value in values.items()}
    texts |= {
        f"{number}/time": str(EPOCH + now),
        f"{device}/node_type": "1: CA",
        f"{number}/sys/class/net/eth0/operstate": "up",
        f"{number}/ethtool/eth0.driver": "driver: mlx5_core",
        f"{number}/ethtool/eth0.link": "Settings for eth0:\n\tSpeed: 100000Mb/s\n\tLink detected: yes",
    }
    links = {
        f"{device}/device": "../../../devices/0000:10:00.0",
        f"{number}/sys/devices/0000:10:00.0/driver": "../../bus/pci/drivers/mlx5_core",
    }
    tree.files |= {path: f"{text}\n".encode() for path, text in texts.items()}
    tree.links |= links
    for path in (*texts, *links):
        tree.add(path)


_said: dict[tuple[Trial, float | None], tuple[Finding, ...]] = {}


async def said(trial: Trial, until: float | None = None) -> tuple[Finding, ...]:
    """The findings on this host."""
    if (trial, until) not in _said:
        _said[trial, until] = tuple(diagnose(await trial_history(trial, until)).findings)
    return _said[trial, until]


async def first_said(trial: Trial, until: float | None = None) -> Finding | None:
    """The first finding on this host."""
    return next(iter(await said(trial, until)), None)
