"""Counter sets of queue pairs: the real kernel makes one per process and type on rocelab's device, and the exporter reads them.

The kernel decides which queue pairs share a set, whose it is, what the port's counters include, and what remains of a set that
ends. The driver below is rocelab's in the way of mlx5: no set of a real mlx5 or ionic, and no firmware, is tested here.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import nic
import pytest
from daemon import Exporter, value, wait_until
from nic import ask_json, run
from uverbs_pairs import Tenant, tenant

CGROUPS = Path("/sys/fs/cgroup")


class Place(NamedTuple):
    """A cgroup and its owner."""

    path: Path
    owner: str


DEVICE, OTHER = "mlx5_0", "mlx5_1"

COUNTED = {
    "out_of_sequence": "transport_out_of_sequence_total",
    "packet_seq_err": "transport_packet_sequence_errors_total",
    "local_ack_timeout_err": "transport_ack_timeouts_total",
    "implied_nak_seq_err": "transport_implied_naks_total",
    "duplicate_request": "transport_duplicate_requests_total",
    "rnr_nak_retry_err": "transport_rnr_naks_received_total",
    "roce_adp_retrans": "transport_adaptive_retransmits_total",
}
"""Names of mlx5's counters in a set, and the end of the metrics of a port (`roce_`) and of an owner (`roce_owner_`)."""

TIMEOUTS, LATE = COUNTED["local_ack_timeout_err"], COUNTED["out_of_sequence"]

OF_PORT_ONLY = ("np_cnp_sent", "rp_cnp_handled", "np_ecn_marked_roce_packets", "rx_icrc_encapsulated")

MOST_SETS = 8
"""ROCELAB_SETS."""


@pytest.fixture(scope="module")
def _cgroups() -> Iterator[None]:
    run("mount", "-t", "cgroup2", "cgroup2", str(CGROUPS))
    yield
    run("umount", str(CGROUPS))


@pytest.fixture(scope="module")
def two(_cgroups) -> Iterator[dict[str, nic.Nic]]:
    """Two devices of mlx5's personality, with sets per process and type as iproute2 enables them."""
    nic.load("mlx5,mlx5")
    enable(DEVICE)
    enable(OTHER)
    yield nic.nics()
    nic.unload()


@pytest.fixture(scope="module")
def host(two) -> Iterator[Exporter]:
    """An exporter that surveys all the time."""
    made = Exporter("--owners.interval=1", "--owners.load=50", "--collect.timeout=4", "--sampler.mode=off")
    surveyed(made, *two)
    yield made
    assert made.stop() == 0


@pytest.fixture(autouse=True)
def _nothing_remains(two) -> Iterator[None]:
    for one in two.values():
        one.reset()
    yield
    assert not printed(DEVICE)
    assert not printed(OTHER)


@contextmanager
def cgroup(path: str, owner: str) -> Iterator[Place]:
    """A cgroup while the block lasts."""
    place = CGROUPS / path
    place.mkdir(parents=True)
    yield Place(place, owner)
    wait_until(lambda: not (place / "cgroup.procs").read_text())
    for folder in (place, *place.parents):
        if CGROUPS in folder.parents and not any(folder.glob("*/")):
            folder.rmdir()


STEPS = count()


@pytest.fixture
def step() -> Iterator[Place]:
    """A step of a job that no other test has: its totals begin with its first set."""
    number = next(STEPS)
    path = f"system.slice/slurmstepd.scope/job_4711/step_{number}/user/task_0"
    with cgroup(path, f"slurm/4711.{number}") as made:
        yield made


@pytest.fixture
def target() -> Iterator[Place]:
    """A service that no other test has."""
    name = f"storage-target-{next(STEPS)}.service"
    with cgroup(f"system.slice/{name}", f"unit/{name}") as made:
        yield made


def enable(device: str) -> None:
    """The command of docs/operating.md."""
    run("rdma", "statistic", "qp", "set", "link", f"{device}/1", "auto", "type,pid", "on")


def printed(device: str = DEVICE) -> list[dict[str, Any]]:
    """The counter sets of a device as iproute2 prints them."""
    found: list[dict[str, Any]] = ask_json("rdma", "-j", "statistic", "qp", "show", "link", f"{device}/1")
    return found


def set_of(one: Tenant, kind: str = "RC", device: str = DEVICE) -> nic.Table:
    """The table of the set that the kernel has made for the queue pairs of this process and type."""
    (number,) = [row["cntn"] for row in printed(device) if row["pid"] == one.pid and row["qp-type"] == kind]
    return nic.Table(nic.CONTROL / device.removeprefix("mlx5_") / "sets" / str(number))


def surveyed(exporter: Exporter, *devices: str) -> dict[str, float]:
    """A scrape after a complete survey of each device that began after this call."""
    now = time.time()
    devices = devices or (DEVICE,)
    return wait_until(lambda: if_begun(exporter.scrape(), devices, now), seconds=100)


def if_begun(samples: dict[str, float], devices: tuple[str, ...], now: float) -> dict[str, float]:
    """The samples if the last complete survey of each device began at this time or later."""
    for device in devices:
        ended = value(samples, "roce_owner_survey_timestamp_seconds", device=device) or 0.0
        if ended - (value(samples, "roce_owner_survey_duration_seconds", device=device) or 0.0) < now:
            return {}
    return samples


def owned(
    samples: dict[str, float], place: Place, name: str = TIMEOUTS, device: str = DEVICE
) -> float | None:
    """A counter of an owner."""
    return value(samples, f"roce_owner_{name}", device=device, owner=place.owner)


def of_port(samples: dict[str, float], name: str = TIMEOUTS, device: str = DEVICE) -> float | None:
    """The same counter of the port."""
    return value(samples, f"roce_{name}", device=device)


def test_the_kernel_makes_a_set_per_process_and_type_and_the_exporter_reads_them(
    host, two, step, target
) -> None:
    with (
        tenant(DEVICE, step.path, "RC 2", "UD 1") as first,
        tenant(DEVICE, step.path, "RC 1") as second,
        tenant(DEVICE, target.path, "RC 3") as third,
    ):
        shapes = {(row["pid"], row["qp-type"]): len(row["lqpn"]) for row in printed()}
        assert shapes == {
            (first.pid, "RC"): 2,
            (first.pid, "UD"): 1,
            (second.pid, "RC"): 1,
            (third.pid, "RC"): 3,
        }
        sets = (set_of(first), set_of(first, "UD"), set_of(second), set_of(third))
        for factor, one in enumerate(sets, start=1):
            numbers = {name: factor * (10 + place) for place, name in enumerate(COUNTED)}
            one.set(numbers | dict.fromkeys(OF_PORT_ONLY, 99))
        two[DEVICE].table("rdma").set(dict.fromkeys(COUNTED, 5))
        samples, rows = surveyed(host), printed()
        for raw, name in COUNTED.items():
            of_step = sum(row[raw] for row in rows if row["pid"] != third.pid)
            of_target = sum(row[raw] for row in rows if row["pid"] == third.pid)
            assert 0 < of_step == owned(samples, step, name), raw
            assert 0 < of_target == owned(samples, target, name), raw
            # The kernel adds the sets to the port's counter: the owners are a part of it.
            assert of_port(samples, name) == 5 + of_step + of_target, raw
        assert not [series for series in samples if series.startswith(("roce_owner_cnp", "roce_owner_ecn"))]
        assert not [row for row in rows for name in OF_PORT_ONLY if row.get(name)]


def test_totals_survive_the_process_and_its_set(host, step) -> None:
    before = of_port(surveyed(host)) or 0
    with tenant(DEVICE, step.path, "RC 1"):
        with tenant(DEVICE, step.path, "RC 1") as ends:
            set_of(ends).set({"local_ack_timeout_err": 30})
            assert owned(surveyed(host), step) == 30
            ended = set_of(ends)
        samples = surveyed(host)
        assert owned(samples, step) == 30
        assert of_port(samples) == before + 30
        with tenant(DEVICE, step.path, "RC 1") as follower:
            # The kernel gives the number of the set to the next one.
            assert set_of(follower) == ended
            ended.set({"local_ack_timeout_err": 40})
            samples = surveyed(host)
            assert owned(samples, step) == 70
            assert of_port(samples) == before + 70


def test_a_set_that_wraps_or_is_made_again_goes_on_counting(host, step) -> None:
    with tenant(DEVICE, step.path, "RC 2") as process:
        set_of(process).set({"local_ack_timeout_err": 2**32 - 5})
        assert owned(surveyed(host), step) == 2**32 - 5
        set_of(process).set({"local_ack_timeout_err": 2**32 + 7})
        assert owned(surveyed(host), step) == 2**32 + 7
        process.does("destroy")
        assert printed() == []
        process.does("RC 1")
        set_of(process).set({"local_ack_timeout_err": 4})
        assert owned(surveyed(host), step) == 2**32 + 11


def test_a_set_that_cannot_be_read_costs_that_one_only(host, step, target) -> None:
    with tenant(DEVICE, step.path, "RC 1") as one, tenant(DEVICE, target.path, "RC 1") as other:
        broken, good = set_of(one), set_of(other)
        broken.set({"local_ack_timeout_err": 3})
        good.set({"local_ack_timeout_err": 100})
        before = of_port(surveyed(host))
        assert before is not None
        with broken.broken("EIO"):
            broken.set({"local_ack_timeout_err": 8})
            good.set({"local_ack_timeout_err": 200})
            samples = surveyed(host)
            # The kernel leaves a set that cannot be read out of the port's counters.
            assert of_port(samples) == before - 3 + 100
            assert owned(samples, step) == 3
            assert owned(samples, target) == 200
            assert value(samples, "roce_exporter_source_up", device=DEVICE, source="owners") == 1
        assert owned(surveyed(host), step) == 8


def test_a_set_that_hangs_costs_its_device_only_and_leaves_nothing_behind(host, step, target) -> None:
    up = "roce_exporter_source_up"
    with tenant(DEVICE, step.path, "RC 1") as one, tenant(OTHER, target.path, "RC 1") as other:
        surveyed(host, DEVICE, OTHER)
        stuck, good = set_of(one), set_of(other, device=OTHER)
        with stuck.broken("hang"):
            wait_until(lambda: value(host.scrape(), up, device=DEVICE, source="owners") == 0)
            good.set({"local_ack_timeout_err": 6})
            samples = surveyed(host, OTHER)
            assert owned(samples, target, device=OTHER) == 6
            assert value(samples, up, device=OTHER, source="owners") == 1
            assert owned(samples, step) is None
        stuck.set({"local_ack_timeout_err": 9})
        samples = surveyed(host)
        assert value(samples, up, device=DEVICE, source="owners") == 1
        assert owned(samples, step) == 9


def test_a_set_of_thousands_of_queue_pairs_costs_nothing_until_the_kernel_cannot_list_it(
    host, step, target
) -> None:
    """The entry of a set lists its queue pairs. iproute2 does not return for 1,000 of them, so it is not called here."""
    up = {"device": DEVICE, "source": "owners"}
    with tenant(DEVICE, target.path, "RC 1") as other:
        small = set_of(other)
        with tenant(DEVICE, step.path, "RC 1") as one:
            big = set_of(one)
            one.does("RC 1000")
            big.set({"local_ack_timeout_err": 3})
            small.set({"local_ack_timeout_err": 4})
            samples = surveyed(host)
            assert owned(samples, step) == 3
            assert owned(samples, target) == 4
            assert value(samples, "roce_exporter_source_up", **up) == 1
            one.does("RC 2000")
            samples = wait_until(lambda: unless_up(host.scrape(), up))
            # More than 32 KiB: the kernel lists no set of the port.
            assert (
                value(samples, "roce_owner_queue_pairs", device=DEVICE, owner=step.owner, state="INIT")
                == 3001
            )
            assert owned(samples, target) is None
        small.set({"local_ack_timeout_err": 9})
        samples = surveyed(host)
        assert value(samples, "roce_exporter_source_up", **up) == 1
        assert owned(samples, target) == 9


def unless_up(samples: dict[str, float], source: dict[str, str]) -> dict[str, float]:
    """The samples if the source is down."""
    return samples if value(samples, "roce_exporter_source_up", **source) == 0 else {}


def test_off_leaves_existing_sets_and_makes_no_new_ones(host, step, target) -> None:
    with tenant(DEVICE, step.path, "RC 1") as one:
        run("rdma", "statistic", "qp", "set", "link", f"{DEVICE}/1", "auto", "off")
        with tenant(DEVICE, target.path, "RC 1"):
            assert [row["pid"] for row in printed()] == [one.pid]
            set_of(one).set({"local_ack_timeout_err": 3})
            samples = surveyed(host)
            assert owned(samples, step) == 3
            assert owned(samples, target) is None
            assert (
                value(samples, "roce_owner_queue_pairs", device=DEVICE, owner=target.owner, state="INIT") == 1
            )
    enable(DEVICE)


def test_a_queue_pair_without_a_set_works_and_is_in_the_port_only(host, step, target) -> None:
    every = ("RC 1", "UD 1", "UC 1")
    with (
        tenant(OTHER, target.path, *every),
        tenant(OTHER, target.path, *every),
        tenant(OTHER, target.path, "RC 1", "UD 1"),
        tenant(OTHER, step.path, "RC 1") as late,
    ):
        rows = printed(OTHER)
        assert len(rows) == MOST_SETS
        assert late.pid not in {row["pid"] for row in rows}
        samples = surveyed(host, OTHER)
        assert value(samples, "roce_owner_queue_pairs", device=OTHER, owner=step.owner, state="INIT") == 1
        assert owned(samples, step, device=OTHER) is None
        assert owned(samples, target, device=OTHER) == 0
