"""names.py RELEASE prints names.h: the counters that each personality lists on the kernel of this release.

The names are those of tests/drift/names.tsv, extracted from the kernel's source, of the newest series that
is not newer than the kernel. The rules below determine when the driver lists a name and how wide its counter is.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LIST = Path(__file__).parents[2] / "drift/names.tsv"
I40E = r"(port|veb)\..+|.+-.+"
"""Intel's names that i40e and idpf list, and ice does not."""


class Personality(NamedTuple):
    """A personality and the place of its names: the driver in the lists, and which of its private counters."""

    name: str
    driver: str
    without: str = ""
    only: str = ""


PERSONALITIES = (
    Personality("mlx5", "mlx5"),
    Personality("mlx4", "mlx4"),
    Personality("bnxt", "bnxt_re"),
    Personality("ionic", "ionic"),
    Personality("ice", "irdma", without=I40E),
    Personality("i40e", "irdma", only=I40E),
    Personality("hns", "hns"),
    Personality("qedr", "qedr"),
    Personality("efa", "efa"),
    Personality("mana", "mana"),
    Personality("erdma", "erdma"),
)

FIRMWARE = {
    "ionic": [
        "tx_rdma_ucast_bytes",
        "tx_rdma_ucast_pkts",
        "tx_rdma_mcast_bytes",
        "tx_rdma_mcast_pkts",
        "tx_rdma_cnp_pkts",
        "rx_rdma_ucast_bytes",
        "rx_rdma_ucast_pkts",
        "rx_rdma_mcast_bytes",
        "rx_rdma_mcast_pkts",
        "rx_rdma_cnp_pkts",
        "rx_rdma_ecn_pkts",
        "req_rx_pkt_seq_err",
        "req_rx_rnr_retry_err",
        "req_rx_rmt_acc_err",
        "req_rx_rmt_req_err",
        "req_rx_oper_err",
        "req_rx_impl_nak_seq_err",
        "req_rx_cqe_err",
        "req_rx_cqe_flush",
        "req_rx_dup_response",
        "req_rx_inval_pkts",
        "req_tx_loc_acc_err",
        "req_tx_loc_oper_err",
        "req_tx_mem_mgmt_err",
        "req_tx_retry_excd_err",
        "req_tx_loc_sgl_inv_err",
        "resp_rx_dup_request",
        "resp_rx_outof_buf",
        "resp_rx_outouf_seq",
        "resp_rx_cqe_err",
        "resp_rx_cqe_flush",
        "resp_rx_loc_len_err",
        "resp_rx_inval_request",
        "resp_rx_loc_oper_err",
        "resp_rx_outof_atomic",
        "resp_tx_pkt_seq_err",
        "resp_tx_rmt_inval_req_err",
        "resp_tx_rmt_acc_err",
        "resp_tx_rmt_oper_err",
        "resp_tx_rnr_retry_err",
        "resp_tx_loc_sgl_inv_err",
        "resp_rx_s0_table_err",
    ]
}
"""RDMA counters whose names the driver reads from the device, so that no source lists them: those of a card of 2025."""

SCOPES = (
    ("mlx5", r"[rt]x_prio\{priority\}_pause.*", "EACH_PFC_PRIORITY"),
    ("mlx5", r"[rt]x_global_pause.*", "GLOBAL_PAUSE"),
    ("mlx5", r"(cc|rdma)_.+", "OPTIONAL"),
    (
        "mlx5",
        r"(ptp|qos|macsec|ipsec)_.+|[rt]x(\{queue\})?_(xdp|xsk|tls|arfs|pp|hds|gro|lro|mpwqe)_.+",
        "FEATURE",
    ),
    ("mlx5", r"(rx|tx|ch)\{queue\}_(?!packets|bytes).+", "FEATURE"),
    ("", r".*\{queue\}.*", "EACH_QUEUE"),
    ("", r".*\{\w+\}.*", "EACH_PRIORITY"),
)
"""Driver (empty: any), pattern, scope as defined in rocelab.h; the first match counts. All other names are listed ONCE.

There are as many traffic classes as priorities. A FEATURE is listed while `features` of the link is 1, with its first
queue only.
"""

NARROW = {
    ("mlx5", "hw_counters"): r"(?!np_|rp_|cc_|rdma_|rx_icrc_).+",
    ("mlx5", "ethtool"): r"outbound_pci_stalled_.+|[rt]x_pci_signal_integrity|pci_bw_.+|link_down_events_phy"
    r"|total_success_.+|rx_out_of_buffer|rx_if_down_packets|dev_internal_queue_oob|rx_oversize_pkts_buffer",
    ("mlx4", "hw_counters"): r".+",
}
"""The counters of a driver and source that wrap at 32 bits."""


def series_for(release: str) -> str:
    """The newest series with a list that is not newer than a kernel's release, such as 7.3 for 7.4.1+deb14-amd64."""
    have = {series for *_, kernels in _lines() for series in kernels}
    fitting = [series for series in have if _number(series) <= _number(release)]
    if not fitting:
        sys.exit(f"{LIST} has no names of Linux {release}")
    return max(fitting, key=_number)


def _lines() -> Iterator[tuple[str, str, str, list[str]]]:
    """Driver, source, name and kernels; a `*` after a kernel marks a statistic of the physical port."""
    for line in LIST.read_text().splitlines()[1:]:
        driver, source, kernels, names = line.split("\t")
        for name in names.split(", "):
            yield driver, source, name, kernels.replace("*", "").split()


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release)[:2])


def read_names(series: str) -> dict[tuple[str, str], list[str]]:
    """The names of a series by driver and source."""
    found: dict[tuple[str, str], list[str]] = {}
    for driver, source, name, kernels in _lines():
        if series in kernels:
            found.setdefault((driver, source), []).append(name)
    return {place: sorted(names) for place, names in found.items()}


def scope_of(driver: str, name: str) -> str:
    """When a driver lists a name, as defined in rocelab.h."""
    rules = (scope for of, pattern, scope in SCOPES if of in ("", driver) and re.fullmatch(pattern, name))
    return next(rules, "ONCE")


def entry(driver: str, source: str, name: str) -> str:
    """A line of a table in C. In a name with two numbers the second one is always 0."""
    scope = scope_of(driver, name)
    bits = 32 if re.fullmatch(NARROW.get((driver, source), "-"), name) else 64
    text = re.sub(r"\{\w+\}", "0", re.sub(r"\{\w+\}", "%u", name, count=1))
    return f'\t{{ "{text}", {scope}, {bits} }},'


def listed(names: dict[tuple[str, str], list[str]], one: Personality) -> dict[str, list[str]]:
    """The names that a personality lists, by source."""
    private = [
        name
        for name in names.get((one.driver, "ethtool"), [])
        if re.fullmatch(one.only or ".+", name) and not (one.without and re.fullmatch(one.without, name))
    ]
    rdma = names.get((one.driver, "hw_counters")) or FIRMWARE.get(one.name, [])
    # Optional counters come last, as in the drivers: RDMA netlink queries by the first one.
    rdma = sorted(rdma, key=lambda name: scope_of(one.driver, name) == "OPTIONAL")
    return {"ethtool": private, "hw_counters": rdma}


def tables(series: str) -> Iterator[str]:
    """The lines of names.h."""
    names = read_names(series)
    yield f"/* Made by names.py from the names of Linux {series}. */"
    for one in PERSONALITIES:
        for source, of_source in listed(names, one).items():
            yield f"static const struct rocelab_name {one.name}_{source}[] = {{"
            yield from (entry(one.driver, source, name) for name in of_source)
            yield "};"


if __name__ == "__main__":
    sys.stdout.write("\n".join(tables(series_for(sys.argv[1]))) + "\n")
