"""`roce-exporter explain`: the meaning, source and current value of a raw counter or a metric."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from roce_exporter.cli.output import print_text
from roce_exporter.cli.parts import collect_settings, make_surveyor
from roce_exporter.collect import Collector
from roce_exporter.exporter import Exporter
from roce_exporter.introspection.explain import explain, nearest, unmapped

if TYPE_CHECKING:
    import argparse

    from roce_exporter.host.kernel import Kernel

OF_OWNERS = "roce_owner_"
"""How the names of metrics begin that need a survey."""


async def explain_name(options: argparse.Namespace, kernel: Kernel) -> int:
    """Explain one name, or list the raw names without a row; returns 1 if the name is unknown."""
    collector = Collector(kernel, collect_settings(options), time.monotonic)
    # Listing objects can take seconds, so it is done only where the answer depends on it.
    wanted = options.name is not None and options.name.startswith(OF_OWNERS)
    exporter = Exporter(collector, surveyor=make_surveyor(options, kernel) if wanted else None)
    observation = await exporter.observe_complete()
    if options.name is None:
        lines = list(unmapped(exporter.normaliser)) or ["every raw name of this host has a row"]
    else:
        lines = list(explain(options.name, observation, exporter.normaliser))
    if not lines:
        near = f"; similar names: {', '.join(found)}" if (found := nearest(options.name)) else ""
        sys.stderr.write(
            f"roce-exporter: {options.name}: not a known metric, raw counter name, or counter of this host{near}\n"
        )
        return 1
    print_text("".join(f"{line}\n" for line in lines))
    return 0
