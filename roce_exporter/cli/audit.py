"""`roce-exporter audit`: compare the host's settings with a profile."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from roce_exporter.checks.settings import JSON, as_json, as_table, audit, is_clean, load_profile
from roce_exporter.cli.output import print_text
from roce_exporter.cli.parts import collect_settings
from roce_exporter.collect import Collector

if TYPE_CHECKING:
    import argparse

    from roce_exporter.host.kernel import Kernel


async def audit_host(options: argparse.Namespace, kernel: Kernel) -> int:
    """Print the findings; returns 1 if a setting is wrong."""
    profile = load_profile(options.audit_profile)
    collector = Collector(kernel, collect_settings(options), time.monotonic)
    snapshot = await collector.collect()
    verdicts = audit(snapshot.devices, profile)
    if options.format == JSON:
        print_text(as_json(verdicts, profile))
    else:
        print_text(as_table(verdicts, profile, colour=sys.stdout is not None and sys.stdout.isatty()))
    return 0 if is_clean(verdicts) else 1
