"""Totals of owners from counter sets that come and go."""

from __future__ import annotations

import pytest

from roce_exporter.catalog import INDEX
from roce_exporter.catalog.owners import OWNER_COUNTERS, ROWS
from roce_exporter.catalog.row import COUNTER
from roce_exporter.owner_model import CounterSet
from roce_exporter.owners.owner_counters import KEPT_ROUNDS, Ledger, growth_of

TIMEOUTS = "roce_owner_transport_ack_timeouts_total"
LATE = "roce_owner_transport_out_of_sequence_total"


def counter_set(number: int, pid: int = 7, kind: str = "", **values: int) -> CounterSet:
    return CounterSet(1, number, pid, kind, values)


def totals(ledger: Ledger) -> dict[tuple[str, str, int], float]:
    return {(row.name, owner, port): value for (row, owner, port), value in ledger.totals.items()}


def enter(
    ledger: Ledger, *sets: CounterSet, owners: dict[int, str] | None = None, dialect: str = "mlx5"
) -> None:
    ledger.enter(dialect, 1, sets, lambda pid: (owners or {}).get(pid, f"job-{pid}"))


def test_the_first_round_is_where_counting_starts() -> None:
    ledger = Ledger()
    enter(ledger, counter_set(1, local_ack_timeout_err=1000))
    assert totals(ledger) == {(TIMEOUTS, "job-7", 1): 0}
    enter(ledger, counter_set(1, local_ack_timeout_err=1010))
    assert totals(ledger) == {(TIMEOUTS, "job-7", 1): 10}


def test_all_of_a_set_that_appears_later_counts() -> None:
    ledger = Ledger()
    enter(ledger)
    enter(ledger, counter_set(1, local_ack_timeout_err=30))
    assert totals(ledger) == {(TIMEOUTS, "job-7", 1): 30}


def test_a_total_keeps_what_its_sets_counted_before_they_ended() -> None:
    ledger = Ledger()
    enter(ledger)
    enter(ledger, counter_set(1, pid=7, local_ack_timeout_err=30), owners={7: "job"})
    enter(ledger, counter_set(2, pid=8, local_ack_timeout_err=5), owners={8: "job"})
    assert totals(ledger) == {(TIMEOUTS, "job", 1): 35}


def test_a_number_that_the_kernel_reuses_is_another_set() -> None:
    ledger = Ledger()
    enter(ledger)
    enter(ledger, counter_set(1, pid=7, local_ack_timeout_err=30), owners={7: "a", 8: "b"})
    enter(ledger, counter_set(1, pid=8, local_ack_timeout_err=40), owners={7: "a", 8: "b"})
    assert totals(ledger) == {(TIMEOUTS, "a", 1): 30, (TIMEOUTS, "b", 1): 40}


def test_sets_per_type_of_one_process_are_added_up() -> None:
    ledger = Ledger()
    enter(ledger)
    enter(
        ledger,
        counter_set(1, kind="RC", local_ack_timeout_err=30),
        counter_set(2, kind="UD", local_ack_timeout_err=1),
    )
    assert totals(ledger) == {(TIMEOUTS, "job-7", 1): 31}


def test_sets_that_are_not_per_process_belong_to_no_owner() -> None:
    ledger = Ledger()
    enter(ledger)
    enter(ledger, counter_set(1, pid=0, kind="RC", local_ack_timeout_err=30))
    assert totals(ledger) == {}


def test_the_rows_are_found_by_the_driver_own_names() -> None:
    of_mlx5, of_ionic = Ledger(), Ledger()
    for ledger, dialect, name in (
        (of_mlx5, "mlx5", "out_of_sequence"),
        (of_ionic, "ionic", "resp_rx_outouf_seq"),
    ):
        enter(ledger)
        enter(ledger, counter_set(1, **{name: 4, "no_such_name": 9}), dialect=dialect)
        assert totals(ledger) == {(LATE, "job-7", 1): 4}
    foreign = Ledger()
    enter(foreign)
    enter(foreign, counter_set(1, resp_rx_outouf_seq=4))
    assert totals(foreign) == {}


def test_a_destroyed_queue_pair_takes_its_counts_out_of_a_set_of_ionic_and_adds_none() -> None:
    of_ionic, of_mlx5 = Ledger(), Ledger()
    for ledger, dialect, name in (
        (of_ionic, "ionic", "resp_rx_outouf_seq"),
        (of_mlx5, "mlx5", "out_of_sequence"),
    ):
        enter(ledger, dialect=dialect)
        for number in (150, 50, 57):
            enter(ledger, counter_set(1, **{name: number}), dialect=dialect)
    assert totals(of_ionic) == {(LATE, "job-7", 1): 157}
    # A set of mlx5 keeps what destroyed queue pairs have counted, so this is another set.
    assert totals(of_mlx5) == {(LATE, "job-7", 1): 207}


def test_several_raw_names_of_one_row_are_added_up() -> None:
    ledger = Ledger()
    enter(ledger)
    enter(ledger, counter_set(1, rx_rdma_ucast_bytes=100, rx_rdma_mcast_bytes=11), dialect="ionic")
    assert totals(ledger) == {("roce_owner_port_receive_bytes_total", "job-7", 1): 111}


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
    for _ in range(KEPT_ROUNDS):
        ledger.retain([])
    assert totals(ledger) == {(TIMEOUTS, "job-7", 1): 10}
    ledger.retain([])
    assert totals(ledger) == {}


@pytest.mark.parametrize(
    ("before", "now", "bits", "growth"),
    [
        (5, 5, 64, 0),
        (5, 9, 64, 4),
        (9, 5, 64, 5),
        ((1 << 32) - 10, 5, 32, 15),
        (1 << 31, 5, 32, 5),
        ((1 << 32) - 10, 1 << 31, 32, 1 << 31),
        ((1 << 64) - 10, 5, 64, 15),
    ],
)
def test_a_counter_that_fell_has_wrapped_or_started_again(
    before: int, now: int, bits: int, growth: int
) -> None:
    assert growth_of(before, now, bits) == growth


def test_every_owner_counter_is_the_part_of_a_row_of_the_port() -> None:
    rows = {row.name: row for row in INDEX.rows}
    for of_port, of_owner in OWNER_COUNTERS:
        assert rows[of_port.name] is of_port
        assert of_owner in ROWS
        assert of_owner.name == of_port.name.replace("roce_", "roce_owner_")
        assert (of_owner.kind, of_owner.unit) == (COUNTER, of_port.unit)
        assert of_owner.labels == ("device", "owner", "port")
    assert {
        TIMEOUTS,
        LATE,
        "roce_owner_transport_ack_timeouts_total",
        "roce_owner_flow_receive_bytes_total",
    } <= {row.name for _, row in OWNER_COUNTERS}


def test_names_that_mlx5_lists_and_never_fills_have_no_total() -> None:
    """A 0 that is no count must not look like a job without congestion."""
    ledger = Ledger()
    enter(
        ledger,
        counter_set(1, np_cnp_sent=0, rp_cnp_handled=0, np_ecn_marked_roce_packets=0, out_of_sequence=3),
    )
    assert totals(ledger) == {(LATE, "job-7", 1): 0}
