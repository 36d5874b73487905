"""The reasons in `left_out.txt` hold, as far as a machine can check them."""

import re
from collections.abc import Callable

from series import CORE, Named, port_names, table

from roce_exporter.catalog import CATALOG, INDEX
from roce_exporter.catalog import left_out as reasons
from roce_exporter.catalog.row import ANY, COUNTERS, HW_COUNTERS

NAMES = {named for named in table() if named.driver != CORE}
PORT = port_names()

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
ZEROS = ("symbol_error", "port_xmit_wait", "VL15_dropped", "multicast_xmit_packets")
"""Linux 7 gives bnxt_re and rxe the names of the PMA; these are never written."""


def of_port(named: Named) -> bool:
    return named in PORT


def has(pattern: str) -> Callable[[Named], object]:
    return lambda named: re.search(pattern, named.name)


def is_part_of_the_port(named: Named) -> object:
    """A virtual port's part of a counter that has a row, or a kind of the port's frames or of the objects of a device."""
    if named.name.startswith("vport_"):
        return INDEX.claimed(named.driver, named.source, named.name.removeprefix("vport_"))
    kinds = r"(^|_)(runt_bytes|good|bad|err_all|all|other|octets_tx_total)(_|$)|^active_|watermark|link_state"
    return re.search(kinds, named.name)


FITS: dict[str, Callable[[Named], object]] = {
    "queue": has(r"\{queue\}|rq\d"),
    "kernel": lambda named: not of_port(named),
    "other traffic": lambda named: not of_port(named) or has("csum|eipe|timeout")(named),
    "administration": lambda named: not of_port(named) or has("arq|VF_admin")(named),
    "size": has(r"\d|size"),
    "cast": has(r"uni|multi|broad|[umb]cast|ctrl|tag|vlan|hc_[rt]x_bytes"),
    "tcp": has("Segs|Opt|Proto"),
    "clock": has("hwtstamp|phc|ptp"),
    "energy": has("lpi|eee"),
    "half duplex": has("collisions"),
    "filter": has("fdir|veb|filter"),
    reasons.NEVER: lambda named: named.name in (*NEVER_WRITTEN, *ZEROS) or named.source == COUNTERS,
    reasons.SUM: lambda named: named.driver == "bnxt_re",
    reasons.SAME: is_part_of_the_port,
    "setting": lambda named: named.source == HW_COUNTERS,
    "undocumented": has("^pcie_|xthol|undermin|register|fifo|oo_drop|^cq_|^rx_buffer$|_sof$|^current_rate$"),
    reasons.NARROW: lambda named: named.source == COUNTERS,
}
"""Per category, a condition on each name that a driver leaves out for this reason."""


def test_names_are_left_out_for_a_reason_that_holds() -> None:
    assert set(FITS) == set(reasons.CATEGORIES) == {entry.reason.category for entry in reasons.LEFT_OUT}
    found = [
        (entry.reason.category, named)
        for named in NAMES
        if not INDEX.claimed(named.driver, named.source, named.example)
        and (entry := reasons.entry_of(named.driver, named.source, named.example))
    ]
    assert len({category for category, _ in found}) >= len(FITS) - 2, (
        "only a setting and low bits are in no list"
    )
    assert sorted((category, named) for category, named in found if not FITS[category](named)) == []


def test_names_that_a_driver_never_writes_have_no_row() -> None:
    never = [("bnxt_re", HW_COUNTERS, name) for name in NEVER_WRITTEN]
    never += [(driver, COUNTERS, name) for driver in ("bnxt_re", "rxe") for name in ZEROS]
    for driver, source, name in never:
        assert INDEX.claimed(driver, source, name) is None
        assert "never written" in INDEX.left_out(driver, source, name)
        assert INDEX.claimed("mlx5", source, name), "mlx5 writes it"
    assert all(INDEX.claimed(driver, COUNTERS, "port_rcv_data") for driver in ("bnxt_re", "rxe"))


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
    entries = [reasons.entry_of("bnxt_re", COUNTERS, narrow) for narrow in whole]
    assert [entry and entry.reason.category for entry in entries] == [reasons.NARROW] * len(whole)
    assert all(INDEX.claimed("bnxt_re", HW_COUNTERS, wide) for wide in whole.values())


def test_every_metric_named_in_a_reason_exists() -> None:
    named = {one for entry in reasons.LEFT_OUT for one in re.findall(r"roce_[a-z_]+\*?", entry.reason.text)}
    assert len(named) >= 5
    names = " ".join(f"{row.name}$" for row in CATALOG)
    assert [
        one
        for one in named
        if not re.search(rf"\b{one.removesuffix('*')}{'' if one[-1] == '*' else '[$]'}", names)
    ] == []


def test_no_reason_contradicts_a_row() -> None:
    """A name has a row or a reason; only a common name may have both, and then the driver's reason counts."""
    for named in NAMES:
        row = INDEX.claimed(named.driver, named.source, named.example)
        entry = reasons.entry_of(named.driver, named.source, named.example)
        assert not (row and entry), named
    for entry in reasons.LEFT_OUT:
        assert entry.dialect != ANY or entry.reason.category in ("setting", "queue", reasons.SAME)
