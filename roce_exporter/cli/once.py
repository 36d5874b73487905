"""`roce-exporter once`: one exposition on standard output."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from roce_exporter.checks.settings import Auditor, load_profile
from roce_exporter.cli.output import print_text
from roce_exporter.cli.parts import collect_settings, make_surroundings, make_surveyor, served_series
from roce_exporter.collect import Collector
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format

if TYPE_CHECKING:
    import argparse

    from roce_exporter.host.kernel import Kernel


async def once(options: argparse.Namespace, kernel: Kernel) -> int:
    """Print one exposition in text format 0.0.4."""
    auditor = Auditor(load_profile(options.audit_profile))
    collector = Collector(kernel, collect_settings(options), time.monotonic)
    exporter = Exporter(
        collector,
        auditor=auditor,
        surveyor=make_surveyor(options, kernel),
        surroundings=make_surroundings(options, kernel),
        served=served_series(options),
    )
    observation = await exporter.observe_complete()
    print_text(exporter.render(observation, Format.TEXT).decode())
    return 0
