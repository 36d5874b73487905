"""`roce-exporter once`: one exposition on standard output."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

from roce_exporter.assemble import assemble
from roce_exporter.cli.output import print_text
from roce_exporter.cli.parts import parts_of
from roce_exporter.exposition import Format
from roce_exporter.introspection.explain import NO_DEVICE

if TYPE_CHECKING:
    import argparse

    from roce_exporter.host.kernel import Kernel


async def once(options: argparse.Namespace, kernel: Kernel) -> int:
    """Print one exposition in text format 0.0.4."""
    with closing(assemble(kernel, parts_of(options))) as exporter:
        observation = await exporter.observe_complete()
        if not observation.snapshot.devices:
            sys.stderr.write(f"roce-exporter: {NO_DEVICE}\n")
        print_text(exporter.render(observation, Format.TEXT).decode())
    return 0
