"""`roce-exporter demo`: a simulated host on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.audit import Auditor, load_profile
from roce_exporter.cli.options import collect_settings
from roce_exporter.demo import run_demo

if TYPE_CHECKING:
    import argparse

    from roce_exporter.kernel import Kernel


async def demo(options: argparse.Namespace, kernel: Kernel) -> int:
    """Show a simulated host until SIGTERM, SIGINT, SIGHUP or the end of --demo.seconds."""
    auditor = Auditor(load_profile(options.audit_profile))
    settings = collect_settings(options)
    return await run_demo(kernel, settings, options.host_simulate, options.demo_seconds, auditor)
