"""The reasons in `left_out.py` hold, as far as a machine can check them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from series import CORE, SERIES, Named, names_of

from roce_exporter.catalog import CATALOG, INDEX
from roce_exporter.catalog import left_out as reasons
from roce_exporter.catalog.row import ANY, COUNTERS, ETHTOOL, HW_COUNTERS

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = sorted({named for series in SERIES for named in names_of(series) if named.driver != CORE})
PORT = {named for series in SERIES for named in names_of(series, "port")}
METRICS = {row.name for row in CATALOG}

NEVER_WRITTEN = (
    "req_cqe_flush_error",
    "resp_cqe_flush_error",
    "roce_adp_retrans",
    "roce_adp_retrans_to",
    "roce_slow_restart",
    "roce_slow_restart_cnps",
    "roce_slow_restart_trans",
    "rp_cnp_ignored",
    "rx_icrc_encapsulated",
)
"""Declared in Broadcom's own bnxt_re; no line of it writes them."""


def of_port(named: Named) -> bool:
    return named in PORT


FITS: dict[str, Callable[[Named], object]] = {
    reasons.QUEUE: lambda named: "{queue}" in named.name or re.search(r"rq\d", named.name),
    reasons.KERNEL: lambda named: not of_port(named),
    reasons.OTHER: lambda named: not of_port(named) or re.search("csum|eipe|timeout", named.name),
    reasons.ADMINISTRATION: lambda named: not of_port(named) or re.search("arq|VF_admin", named.name),
    reasons.SIZE: lambda named: re.search(r"\d|size", named.name),
    reasons.CAST: lambda named: re.search(
        r"uni|multi|broad|[umb]cast|ctrl|tag|vlan|hc_[rt]x_bytes", named.name
    ),
    reasons.TCP: lambda named: re.search("Segs|Opt|Proto", named.name),
    reasons.CLOCK: lambda named: re.search("hwtstamp|phc|ptp", named.name),
    reasons.IDLE: lambda named: re.search("lpi|eee", named.name),
    reasons.DUPLEX: lambda named: "collisions" in named.name,
    reasons.FILTER: lambda named: re.search("fdir|veb|filter", named.name),
    reasons.NEVER: lambda named: named.name in NEVER_WRITTEN,
    reasons.SUM: lambda named: named.driver == "bnxt_re",
    reasons.SAME: lambda _: True,
    reasons.SETTING: lambda named: named.source == HW_COUNTERS,
    reasons.UNDOCUMENTED: lambda _: True,
    reasons.NARROW: lambda named: named.source == COUNTERS,
}
"""Per category, a condition on each name that a driver leaves out for this reason."""


def entry_of(named: Named) -> reasons.LeftOut | None:
    if INDEX.claimed(named.driver, named.source, named.example):
        return None
    return reasons.entry_of(named.driver, named.source, named.example)


def test_every_category_is_checked() -> None:
    assert set(FITS) == set(reasons.CATEGORIES)
    assert {entry.reason.category for entry in reasons.LEFT_OUT} == set(reasons.CATEGORIES)


@pytest.mark.parametrize("category", FITS)
def test_names_are_left_out_for_a_reason_that_holds(category: str) -> None:
    wrong = [
        named
        for named in NAMES
        if (entry := entry_of(named)) and entry.reason.category == category and not FITS[category](named)
    ]
    assert wrong == []


def test_mac_errors_of_bnxt_have_rows() -> None:
    """An earlier version left them out as the kernel's own traffic; the kernel reports `tx_err` as transmit errors."""
    for name in ("tx_err", "rx_runt_frames", "tx_jabber_frames"):
        assert Named("bnxt_re", ETHTOOL, name) in PORT
        assert INDEX.claimed("bnxt_re", ETHTOOL, name)
    assert "half-duplex" in INDEX.left_out("bnxt_re", ETHTOOL, "tx_total_collisions")


@pytest.mark.parametrize("name", NEVER_WRITTEN)
def test_names_that_a_driver_never_writes_have_no_row(name: str) -> None:
    assert INDEX.claimed("bnxt_re", HW_COUNTERS, name) is None
    assert "never written" in INDEX.left_out("bnxt_re", HW_COUNTERS, name)
    assert INDEX.claimed("mlx5", HW_COUNTERS, name), "mlx5 writes it"


def test_the_parts_of_a_sum_have_rows() -> None:
    sums = [entry for entry in reasons.LEFT_OUT if entry.reason.category == reasons.SUM]
    assert len(sums) == 3
    for entry in sums:
        assert len(entry.parts) > 1
        assert all(INDEX.claimed(entry.dialect, entry.source, part) for part in entry.parts)


def test_low_bits_have_a_whole_counter() -> None:
    whole = {
        "port_rcv_errors": "rx_roce_errors",
        "port_xmit_discards": "tx_roce_discards",
        "port_rcv_constraint_errors": "rx_roce_discards",
        "port_xmit_constraint_errors": "tx_roce_errors",
    }
    for narrow, wide in whole.items():
        entry = reasons.entry_of("bnxt_re", COUNTERS, narrow)
        assert entry is not None
        assert entry.reason.category == reasons.NARROW
        assert INDEX.claimed("bnxt_re", HW_COUNTERS, wide)


@pytest.mark.parametrize("driver", ["bnxt_re", "rxe"])
def test_a_pma_that_holds_zeros_has_no_row(driver: str) -> None:
    """Linux 7 gives these drivers the names of the PMA; the ones that they never write would be 0 on every host."""
    for name in ("symbol_error", "port_xmit_wait", "VL15_dropped", "multicast_xmit_packets"):
        assert INDEX.claimed(driver, COUNTERS, name) is None
        assert INDEX.claimed("mlx5", COUNTERS, name)
        assert "never written" in INDEX.left_out(driver, COUNTERS, name)
    assert INDEX.claimed(driver, COUNTERS, "port_rcv_data")


@pytest.mark.parametrize(
    "entry", reasons.LEFT_OUT, ids=lambda entry: f"{entry.dialect}-{entry.pattern.pattern:.30}"
)
def test_a_metric_named_in_a_reason_exists(entry: reasons.LeftOut) -> None:
    for metric in re.findall(r"roce_[a-z_]+\*?", entry.reason.text):
        stem = metric.removesuffix("*")
        assert any(name == metric or (stem != metric and name.startswith(stem)) for name in METRICS), metric


def test_no_reason_contradicts_a_row() -> None:
    """A name has a row or a reason; only a common name may have both, and then the driver's reason counts."""
    for named in NAMES:
        row = INDEX.claimed(named.driver, named.source, named.example)
        entry = reasons.entry_of(named.driver, named.source, named.example)
        assert not (row and entry), named
    for entry in reasons.LEFT_OUT:
        assert entry.dialect != ANY or entry.reason.category in (reasons.SETTING, reasons.QUEUE, reasons.SAME)
