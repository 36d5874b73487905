"""The size of simulated hosts, and the table of fleets in docs/operating.md: `python -m roce_exporter.introspection.fleet_table docs/operating.md`."""

from __future__ import annotations

import asyncio
import gzip
import logging
import re
import sys
from pathlib import Path

from roce_exporter.catalog.row import MetricSet
from roce_exporter.introspection.fleet_plan import Fleet, HostSize, plan
from roce_exporter.introspection.fleet_report import plan_table
from roce_exporter.introspection.simulated_daemon import SimulatedDaemon, sample_lines

HOSTS = (10, 1_000, 10_000, 100_000)
LEVEL = 1
"""Of gzip: that of the exporter's web server."""
BLOCK = re.compile(r"(<!-- plan --table -->\n).*?(<!-- end -->)", re.DOTALL)
"""Where the table is in the document."""
DEFAULT = Fleet(1, 8, "mlx5", MetricSet.STANDARD, 15.0, 15 * 86400.0)


async def host_sizes(driver: str, ports: int) -> dict[MetricSet, HostSize]:
    """One scrape of a simulated host under an incast, per set; takes about two seconds."""
    # Faults of the simulated host are no news about this one.
    logging.disable(logging.WARNING)
    try:
        scrape = await SimulatedDaemon((driver,) * ports).last()
    finally:
        logging.disable(logging.NOTSET)
    return {
        one: HostSize(len(sample_lines(text)), len(gzip.compress(text.encode(), LEVEL)))
        for one, text in scrape.texts.items()
    }


async def fleet_table(like: Fleet = DEFAULT) -> str:
    """Fleets of such hosts in Markdown, small to large, every set."""
    sizes = await host_sizes(like.driver, like.ports)
    fleets = [like._replace(hosts=hosts, metric_set=one) for hosts in HOSTS for one in MetricSet]
    return plan_table(plan(fleet, sizes[fleet.metric_set]) for fleet in fleets)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    table = asyncio.run(fleet_table())
    place.write_text(BLOCK.sub(rf"\g<1>{table}\g<2>", place.read_text(encoding="utf-8")), encoding="utf-8")
