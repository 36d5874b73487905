"""Every name in the source of every RoCE driver, of every kernel in this folder, has a row or a reason; the documents count them."""

from itertools import pairwise

import pytest
from series import CORE, SERIES, TABLE, Named, extra_names, names_of, port_names, table, with_kernel, written
from table import DOCUMENTS, MODULES, ROOT, fate, filled, share

from roce_exporter.catalog import DIALECTS, INDEX

ALL = {series: names_of(series) for series in SERIES}
DRIVERS = {"mlx5", "mlx4", "bnxt_re", "irdma", "ionic", "hns", "qedr", "efa", "rxe", CORE}
"""In every series; mana, erdma, idpf and bng_re came later. siw has no names of its own."""


def test_every_name_has_a_row_or_a_reason() -> None:
    """Also those that no kernel has."""
    assert len(extra_names()) > 90
    assert [named for named in table() if fate(named) == "open"] == []


def test_the_table_is_sorted_and_written_as_it_is_read() -> None:
    assert written(table()) == TABLE.read_text()


def test_another_kernel_adds_its_names_and_replaces_what_it_had() -> None:
    fresh, old = Named("rxe", "hw_counters", "fresh"), Named("rxe", "hw_counters", "sent_pkts")
    assert with_kernel("7.3", ALL["7.3"], port_names() & {*ALL["7.3"]}) == table()
    made = with_kernel("7.11", [fresh, old], [fresh])
    assert made[fresh] == ("7.11*",)
    assert made[old] == ("5.4", "5.10", "5.15", "6.1", "6.12", "7.3", "7.11")
    again = with_kernel("7.3", [], [])
    assert again[old] == ("5.4", "5.10", "5.15", "6.1", "6.12")
    assert again.keys() == table().keys(), "a name that no kernel has any more is still known"


def test_the_lists_are_whole() -> None:
    """A list that lost a driver would make the first test pass for nothing."""
    assert {"5.4", "5.15", "6.1", "6.12"} < set(SERIES)
    assert any(series.startswith("7.") for series in SERIES)
    for names in ALL.values():
        assert names == sorted(set(names))
        assert DRIVERS <= {named.driver for named in names} <= {*DIALECTS, CORE}
        assert len(names) > 1200
    for older, newer in pairwise(ALL.values()):
        assert {named[:2] for named in older} <= {named[:2] for named in newer}, "no driver disappears"


def test_a_driver_is_recognised_by_its_names_on_every_kernel() -> None:
    """As in a recording that does not say which driver it is of: newer bnxt_re has nineteen names of mlx5."""
    for names in ALL.values():
        drivers = {named.driver for named in names if named.source == "hw_counters"}
        assert len(drivers) > 4
        for driver in drivers:
            assert (
                INDEX.recognise([one.name for one in names if one[:2] == (driver, "hw_counters")]) == driver
            )


def test_the_names_that_linux_changed_are_in_the_lists() -> None:
    """The extraction reads tables, macros and formats alike."""
    old, new = ({named.name for named in ALL[series]} for series in ("6.12", "7.3"))
    assert {"tx_cnp_pkts", "to_retransmits", "iwInRdmaReads"} <= old - new
    assert {"np_cnp_pkts", "InRdmaReads", "rcvd_bytes", "pci_bw_stale_event"} <= new - old
    assert {"rx_prio{priority}_pause", "rx{queue}_packets", "[{queue}]: rx_ucast_packets"} <= old & new
    assert {"rx_global_pause", "queue_{queue}_tx_cnt", "port.rx_priority_{priority}_xoff_rx"} <= old & new
    assert {"rx_err_lane_3_phy", "vport_out_of_buffer", "pfc_pri7_rx_duration_us"} <= old & new


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_table_of_a_document_is_drawn_from_the_lists(document) -> None:
    """Rewrite it with `python tests/drift/table.py`."""
    assert (ROOT / document).read_text() == filled(document)


def test_a_name_is_counted_by_its_fate() -> None:
    one = Named("bnxt_re", "hw_counters", "np_cnp_pkts")
    left, fresh = one._replace(name="rp_cnp_ignored"), one._replace(name="fresh")
    assert [fate(named) for named in (one, left, fresh)] == ["mapped", "left out", "open"]
    assert str(share([one, left, fresh, one])) == "4: 2 + 1"
    assert {named.driver for names in ALL.values() for named in names} == set(MODULES)
