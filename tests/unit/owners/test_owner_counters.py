"""Totals of owners from counter sets that come and go."""

import pytest

from roce_exporter.catalog import INDEX
from roce_exporter.catalog.owners import OWNER_COUNTERS
from roce_exporter.catalog.row import COUNTER
from roce_exporter.model.owner import CounterSet
from roce_exporter.owners.owner_totals import KEPT_ROUNDS, Ledger

TIMEOUTS = "roce_owner_transport_ack_timeouts_total"
LATE = "roce_owner_transport_out_of_sequence_total"


def counter_set(number: int, pid: int = 7, kind: str = "", **values: int) -> CounterSet:
    return CounterSet(1, number, pid, kind, values)


def totals(ledger: Ledger) -> dict[tuple[str, str, int], float]:
    return {(row.name, owner, port): value for (row, owner, port), value in ledger.totals.items()}


def enter(ledger: Ledger, *sets: CounterSet, dialect: str = "mlx5") -> None:
    """Process 17 and 27 are of one job."""
    ledger.enter(dialect, 1, sets, lambda pid: f"job-{pid}" if pid < 10 else "job")


def late(number: int, name: str = "out_of_sequence") -> CounterSet:
    return counter_set(1, **{name: number})


def acks(number: int, pid: int = 7, count: int = 30, kind: str = "") -> CounterSet:
    return counter_set(number, pid, kind, local_ack_timeout_err=count)


IONIC = "resp_rx_outouf_seq"
ROUNDS: dict[str, tuple[str, list[list[CounterSet]], dict[tuple[str, str, int], float]]] = {
    "the first round is where counting starts": ("mlx5", [[acks(1)]], {(TIMEOUTS, "job-7", 1): 0}),
    "then what is counted": (
        "mlx5",
        [[acks(1, count=1000)], [acks(1, count=1010)]],
        {(TIMEOUTS, "job-7", 1): 10},
    ),
    "a counter that wraps": (
        "mlx5",
        [[acks(1, count=(1 << 32) - 10)], [acks(1, count=5)]],
        {(TIMEOUTS, "job-7", 1): 15},
    ),
    "all of a set that appears later": ("mlx5", [[], [acks(1)]], {(TIMEOUTS, "job-7", 1): 30}),
    "sets that ended": ("mlx5", [[], [acks(1, 17)], [acks(2, 27, 5)]], {(TIMEOUTS, "job", 1): 35}),
    "a number that the kernel reuses": (
        "mlx5",
        [[], [acks(1)], [acks(1, 8, 40)]],
        {(TIMEOUTS, "job-7", 1): 30, (TIMEOUTS, "job-8", 1): 40},
    ),
    "a set per type": ("mlx5", [[], [acks(1, kind="RC"), acks(2, 7, 1, "UD")]], {(TIMEOUTS, "job-7", 1): 31}),
    "sets that are not per process": ("mlx5", [[], [acks(1, 0, kind="RC")]], {}),
    "a name of ionic": (
        "ionic",
        [[], [late(4, IONIC), counter_set(2, no_such_name=9)]],
        {(LATE, "job-7", 1): 4},
    ),
    "a name of another driver": ("mlx5", [[], [late(4, IONIC)]], {}),
    # A queue pair that ends takes its counts out of a set of ionic; a set of mlx5 keeps them, so this is another set.
    "ionic loses 100": (
        "ionic",
        [[], *([late(one, IONIC)] for one in (150, 50, 57))],
        {(LATE, "job-7", 1): 157},
    ),
    "mlx5 loses 100": ("mlx5", [[], *([late(one)] for one in (150, 50, 57))], {(LATE, "job-7", 1): 207}),
    "several raw names of one row": (
        "ionic",
        [[], [counter_set(1, rx_rdma_ucast_bytes=100, rx_rdma_mcast_bytes=11)]],
        {("roce_owner_port_receive_bytes_total", "job-7", 1): 111},
    ),
    # A 0 that is no count must not look like a job without congestion.
    "names that mlx5 lists and never fills": (
        "mlx5",
        [
            [],
            [
                counter_set(
                    1, np_cnp_sent=0, rp_cnp_handled=0, np_ecn_marked_roce_packets=0, out_of_sequence=3
                )
            ],
        ],
        {(LATE, "job-7", 1): 3},
    ),
}


@pytest.mark.parametrize(("dialect", "rounds", "expected"), ROUNDS.values(), ids=ROUNDS)
def test_what_is_counted_in_rounds(dialect, rounds, expected) -> None:
    ledger = Ledger()
    for sets in rounds:
        enter(ledger, *sets, dialect=dialect)
    assert totals(ledger) == expected


def test_a_port_that_could_not_be_read_for_a_round_continues() -> None:
    ledger = Ledger()
    enter(ledger, counter_set(1, local_ack_timeout_err=10))
    ledger.retain(["job-7"])
    enter(ledger, counter_set(1, local_ack_timeout_err=25))
    assert totals(ledger) == {(TIMEOUTS, "job-7", 1): 15}


def test_totals_are_kept_for_a_while_after_the_owner_is_gone() -> None:
    ledger = Ledger()
    enter(ledger)
    enter(ledger, counter_set(1, local_ack_timeout_err=10))
    enter(ledger)
    for there in (["job-7"], *[[]] * KEPT_ROUNDS):
        ledger.retain(there)
    assert totals(ledger) == {(TIMEOUTS, "job-7", 1): 10}
    ledger.retain([])
    assert totals(ledger) == {}
    enter(ledger, counter_set(1, local_ack_timeout_err=12))
    for _ in range(KEPT_ROUNDS):
        ledger.retain([])
    assert totals(ledger) == {(TIMEOUTS, "job-7", 1): 12}
    ledger.retain([])
    assert totals(ledger) == {}


def test_every_owner_counter_is_the_part_of_a_row_of_the_port() -> None:
    for of_port, of_owner in OWNER_COUNTERS:
        assert INDEX.named[of_port.name] is of_port
        assert INDEX.named[of_owner.name] is of_owner
        assert of_owner.name == of_port.name.replace("roce_", "roce_owner_")
        assert (of_owner.kind, of_owner.unit) == (COUNTER, of_port.unit)
        assert of_owner.labels == ("device", "owner", "port")
    assert {
        TIMEOUTS,
        LATE,
        "roce_owner_transport_ack_timeouts_total",
        "roce_owner_flow_receive_bytes_total",
    } <= {row.name for _, row in OWNER_COUNTERS}
