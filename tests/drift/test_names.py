"""Every name in the source of every RoCE driver, of every kernel in this folder, has a row or a reason."""

from __future__ import annotations

import itertools

import pytest
from series import CORE, SERIES, Named, extra_names, names_of

from roce_exporter.catalog import DIALECTS, INDEX, recognise

ALL = {series: names_of(series) for series in SERIES}

DRIVERS = {"mlx5", "mlx4", "bnxt_re", "irdma", "ionic", "hns", "qedr", "mana", "efa", "rxe", CORE}
"""In every series; erdma, idpf and bng_re came later. siw has no names of its own."""


def is_known(named: Named) -> bool:
    dialect = "mlx5" if named.driver == CORE else named.driver
    return bool(
        INDEX.claimed(dialect, named.source, named.example)
        or INDEX.left_out(dialect, named.source, named.example)
    )


@pytest.mark.parametrize("series", SERIES)
def test_every_name_of_every_driver_has_a_row_or_a_reason(series: str) -> None:
    unknown = [named for named in ALL[series] if not is_known(named)]
    assert unknown == []


def test_every_name_outside_the_kernel_lists_has_a_row_or_a_reason() -> None:
    names = extra_names()
    assert len(names) > 90
    assert [named for named in names if not is_known(named)] == []


def test_the_series_that_debian_packages_are_there() -> None:
    assert {"6.1", "6.12"} < set(SERIES)
    assert any(series.startswith("7.") for series in SERIES)


@pytest.mark.parametrize("series", SERIES)
def test_a_list_is_sorted_and_names_every_driver(series: str) -> None:
    """A list that lost a driver would make the first test pass for nothing."""
    assert ALL[series] == sorted(set(ALL[series]))
    assert {named.driver for named in ALL[series]} >= DRIVERS
    assert {named.driver for named in ALL[series]} <= {*DIALECTS, CORE}
    assert len(ALL[series]) > 1500


def test_no_driver_disappears_from_a_newer_kernel() -> None:
    for older, newer in itertools.pairwise(SERIES):
        before = {(named.driver, named.source) for named in ALL[older]}
        after = {(named.driver, named.source) for named in ALL[newer]}
        assert before <= after, (older, newer)


HARDWARE = [
    (series, driver)
    for series in SERIES
    for driver in sorted({named.driver for named in ALL[series] if named.source == "hw_counters"})
]


@pytest.mark.parametrize(("series", "driver"), HARDWARE)
def test_a_driver_is_recognised_by_its_names_on_every_kernel(series: str, driver: str) -> None:
    """As in a recording that does not say which driver it is of: newer bnxt_re has nineteen names of mlx5."""
    names = [named.name for named in ALL[series] if named[:2] == (driver, "hw_counters")]
    assert recognise(names) == driver


def test_the_names_that_linux_changed_are_in_the_lists() -> None:
    """The extraction reads tables, macros and formats alike."""
    old, new = ({named.name for named in ALL[series]} for series in ("6.12", "7.3"))
    assert {"tx_cnp_pkts", "to_retransmits", "iwInRdmaReads"} <= old - new
    assert {"np_cnp_pkts", "InRdmaReads", "rcvd_bytes", "pci_bw_stale_event"} <= new - old
    assert {"rx_prio{priority}_pause", "rx{queue}_packets", "[{queue}]: rx_ucast_packets"} <= old & new
    assert {"rx_global_pause", "queue_{queue}_tx_cnt", "port.rx_priority_{priority}_xoff_rx"} <= old & new
    assert {"rx_err_lane_3_phy", "vport_out_of_buffer", "pfc_pri7_rx_duration_us"} <= old & new
