"""How many series has a port with each exporter? Each is one sample per scrape, so this is what a fleet costs its Prometheus.

mlx5 ports of 51 files each (`trees.py`), 1 and 8 of them, so that a port is told apart from the process. node_exporter's collector
`ethtool` has a series for every name of `ethtool -S`, as `python bench ethernet` shows (9 more per port); veth has other names than mlx5, so
these are counted: those of the simulated mlx5 port, and per channel those in the source of the newest kernel (tests/drift), without TLS,
XSK, PTP and QoS, which a host may not use. rdma_exporter's own collector of that kind has a list of names, which is counted alike.
"""

from __future__ import annotations

import re
from pathlib import Path

from processes import start
from rivals import Rival, node_exporters, rdma_exporters, roce_exporter
from tables import host, print_head, print_row

from roce_exporter.catalog.row import MetricSet
from roce_exporter.host.simulated.kernel import simulate

NAMES = Path(__file__).parent.parent / "tests/drift/names.tsv"
PER_CHANNEL = re.compile(r"(?:rx|tx|ch)\{queue\}_(?!tls|xsk).*")
READ_BY_RDMA_EXPORTER = re.compile(
    r"[rt]x_prio\d_pause(_duration|_transition)?|rx_prio\d_(buf_discard|cong_discard|discards|marked)"
    r"|outbound_pci_stalled_(rd|wr)(_events)?|outbound_pci_buffer_overflow|[rt]x_pci_signal_integrity|rx_err_lane_\d_phy"
    r"|[rt]x_global_pause(_duration)?|rx_global_pause_transition|tx_pause_storm_(warning|error)_events"
    r"|[rt]x_vport_rdma_(unicast|multicast)_(bytes|packets)|dev_out_of_buffer|rx_out_of_buffer|rx_discards_phy"
    r"|rx_(corrected_bits|pcs_symbol_err|bits|crc_errors)_phy|link_down_events_phy"
)
"""The names of `ethtool -S` that its README lists, 0.7.1."""
FEW, MANY = 1, 8


def rivals() -> list[Rival]:
    """The exporters under comparison, as far as they are installed."""
    own = [roce_exporter(one.value, f"--metrics.set={one.value}") for one in MetricSet]
    return [*own, *node_exporters("infiniband"), *rdma_exporters()]


def series(rival: Rival, ports: int) -> int:
    """Samples of one scrape of a host with these ports."""
    with host(ports) as tree, start(rival, tree) as running:
        running.scrape()
        return sum(bool(line) and not line.startswith(b"#") for line in running.scrape().body.splitlines())


def print_files() -> None:
    """What all read of the same files; roce_exporter's ports have no network device here, so this is not all that it has."""
    print_head("exporter, the same 51 files per port", "1 port", "8 ports", "per port")
    for rival in rivals():
        few, many = series(rival, FEW), series(rival, MANY)
        print_row(rival.name, few, many, round((many - few) / (MANY - FEW), 1))


def print_names() -> None:
    """What `ethtool -S` adds per port."""
    kernel = simulate("quiet", clock=lambda: 0.0, vendors=("mlx5",))
    names, _ = kernel.ethtool_statistics("eth0")
    listed = [line.split("\t") for line in NAMES.read_text().splitlines()]
    lists = [
        all_names for *of, kernels, all_names in listed if of == ["mlx5", "ethtool"] and "7.3" in kernels
    ]
    channel = {name for one in lists for name in one.split(", ")}
    queues = sum(bool(PER_CHANNEL.fullmatch(name)) for name in channel)
    chosen = sum(bool(READ_BY_RDMA_EXPORTER.fullmatch(name)) for name in names)
    print()
    print_head("what `ethtool -S` of an mlx5 port adds", "per port", "per channel of the port")
    print_row("node_exporter, ethtool", len(names), queues)
    print_row("rdma_exporter, ethtool", chosen, 0)


def main() -> None:
    """Print both tables."""
    print_files()
    print_names()


if __name__ == "__main__":
    main()
