"""What does a scrape cost, compared with node_exporter and the usual Python packages on the same tree?

1, 8 and 16 mlx5 ports with 21 counters and 30 hw_counters each. node_exporter up to 1.9 reads the counters only; the
newest reads the hw_counters too.
"""

from __future__ import annotations

from processes import compare
from rivals import PROMETHEUS, node_exporters, prescribed, rdma_exporters, roce_exporter
from tables import host, print_comparison

from roce_exporter.host import sources

PORTS = (1, 8, 16)
ROUNDS = 5
SCRAPES = 40
SLOW_SCRAPES = 4

LEFT_OUT = [f"--source.disable={name}" for name in sources.NAMES if name not in ("port", "counters")]
SAME_COUNTERS = roce_exporter("same counters", "--sampler.mode=off", *LEFT_OUT)
"""Only the counters that node_exporter's infiniband collector has always read."""
ALL = roce_exporter("all")


def main() -> None:
    """Print one table per number of ports."""
    for ports in PORTS:
        with host(ports) as tree:
            asked = roce_exporter("all, as Prometheus asks: OpenMetrics, gzip", headers=PROMETHEUS)
            figures = compare(
                [*node_exporters("infiniband"), *rdma_exporters(), SAME_COUNTERS, ALL, asked],
                tree,
                ROUNDS,
                SCRAPES,
            )
            if ports == PORTS[-1]:
                usual = [*node_exporters("infiniband")[:1], prescribed("collector"), prescribed("aiofiles")]
                figures += compare(usual, tree, ROUNDS, SLOW_SCRAPES)[1:]
            print_comparison(f"{ports} mlx5 ports, 51 counters each", figures)


if __name__ == "__main__":
    main()
