"""What the commands that serve until they are stopped have in common."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from roce_exporter.web.web_config_file import WebConfigFile


def stop_event() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def web_config_of(options: argparse.Namespace) -> WebConfigFile | None:
    """The file of `--web.config.file`; None without it.

    Raises:
        WebConfigError: the file is invalid.
    """
    if not options.web_config_file:
        return None
    from roce_exporter.web.web_config_file import WebConfigFile  # noqa: PLC0415 - rarely used, and YAML is slow to import

    return WebConfigFile(options.web_config_file)
