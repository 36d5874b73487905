"""`roce-exporter capture`: record a host and scrub identifying data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.cli.output import print_text, progress
from roce_exporter.host.recorded.capture import capture

if TYPE_CHECKING:
    import argparse

    from roce_exporter.host.kernel import Kernel


async def capture_host(options: argparse.Namespace, kernel: Kernel) -> int:
    """Record the host, with identifying data scrubbed."""
    lasts = (options.moments - 1) * options.interval
    async with progress(f"recording {options.moments} moments, about {lasts:.0f} s"):
        written = await capture(kernel, options.output, options.moments, options.interval)
    print_text(f"{written}\n")
    return 0
