"""`roce-exporter demo`: a simulated host on the terminal."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from roce_exporter.audit import Auditor, load_profile
from roce_exporter.cli.options import collect_settings
from roce_exporter.cli.parser import OptionError

if TYPE_CHECKING:
    import argparse

    from roce_exporter.kernel import Kernel

RICH_IS_MISSING = "demo needs the package rich; install the extra demo, in a clone: pip install '.[demo]'"


async def demo(options: argparse.Namespace, kernel: Kernel) -> int:
    """Show a simulated host until SIGTERM, SIGINT, SIGHUP or the end of the given time.

    Raises:
        OptionError: rich is not installed.
    """
    if find_spec("rich") is None:
        raise OptionError(RICH_IS_MISSING)
    from roce_exporter.demo import run_demo  # noqa: PLC0415 - imports rich, which the daemon does not install

    auditor = Auditor(load_profile(options.audit_profile))
    settings = collect_settings(options)
    return await run_demo(kernel, settings, options.host_simulate, options.demo_seconds, auditor)
