"""`roce-exporter`: parses the flags and runs one command, for example `serve`; `cli.options.COMMANDS` lists them.

Exit codes: 0 success; 1 nothing found to explain, a setting found wrong, or an internal error (with its traceback);
2 invalid input (reported as one line).
"""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING

from roce_exporter.checks.settings import ProfileError
from roce_exporter.cli.audit import audit_host
from roce_exporter.cli.explain import explain_name
from roce_exporter.cli.host import open_kernel
from roce_exporter.cli.log import set_up_logging
from roce_exporter.cli.once import once
from roce_exporter.cli.options import parse_options
from roce_exporter.cli.output import OutputError, mute
from roce_exporter.cli.parser import OptionError
from roce_exporter.cli.serve import serve
from roce_exporter.web import ListenError, WebConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from roce_exporter.host.kernel import Kernel

UNUSABLE = 2

LOG_LEVELS = {
    "serve": "info",
    "switches": "info",
    "wire": "info",
    "namespaces": "info",
    "demo": "error",
    "diagnose": "error",
}
"""Defaults per command; "warn" for the others. The demo and `diagnose` show storms themselves, so they log errors only."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code. Invalid input is reported as one line on stderr."""
    try:
        options = parse_options(sys.argv[1:] if argv is None else argv)
        set_up_logging(options.log_level or LOG_LEVELS.get(options.command, "warn"), options.log_format)
        if options.command in WITHOUT_HOST:
            return asyncio.run(WITHOUT_HOST[options.command](options))
        kernel = open_kernel(options)
        return asyncio.run(COMMANDS[options.command](options, kernel))
    except (
        OptionError,
        WebConfigError,
        ListenError,
        ProfileError,
        OutputError,
    ) as error:
        sys.stderr.write(f"roce-exporter: {error}\n")
        return UNUSABLE
    except BrokenPipeError:
        # The reader of our output has closed it, as `head` does.
        mute()
        return 0
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


async def capture_host(options: argparse.Namespace, kernel: Kernel) -> int:
    """See cli.capture."""
    from roce_exporter.cli import capture  # noqa: PLC0415 - imports archive and compression modules, which no other command needs

    return await capture.capture_host(options, kernel)


async def switches(options: argparse.Namespace) -> int:
    """See cli.switches."""
    from roce_exporter.cli import switches as command  # noqa: PLC0415 - no other command needs the modules of switches

    return await command.switches(options)


async def wire(options: argparse.Namespace) -> int:
    """See cli.wire."""
    from roce_exporter.cli import wire as command  # noqa: PLC0415 - no other command needs the modules of packets

    return await command.wire(options)


async def namespaces(options: argparse.Namespace) -> int:
    """See cli.namespaces."""
    from roce_exporter.cli import namespaces as command  # noqa: PLC0415 - a process of its own

    return await command.namespaces(options)


async def translate(options: argparse.Namespace) -> int:
    """See cli.translate."""
    from roce_exporter.cli import translate as command  # noqa: PLC0415 - no other command needs the names of other exporters

    return await command.translate(options)


async def diagnose(options: argparse.Namespace) -> int:
    """See cli.diagnose."""
    from roce_exporter.cli import diagnose as command  # noqa: PLC0415 - no other command needs the rules and the modules of HTTP

    return await command.diagnose_host(options)


async def doctor(options: argparse.Namespace) -> int:
    """See cli.doctor."""
    from roce_exporter.cli import doctor as command  # noqa: PLC0415 - no other command needs the modules of HTTP

    return await command.check_host(options)


async def demo(options: argparse.Namespace, kernel: Kernel) -> int:
    """See cli.demo."""
    from roce_exporter.cli import demo as command  # noqa: PLC0415 - imports rich, which no other command needs

    return await command.demo(options, kernel)


WITHOUT_HOST = {
    "switches": switches,
    "wire": wire,
    "namespaces": namespaces,
    "translate": translate,
    "diagnose": diagnose,
    "doctor": doctor,
}
"""Commands without a host, `doctor`, and `diagnose`, which opens its own: Prometheus has its history, or a clock of its own plays it."""

COMMANDS = {
    "demo": demo,
    "serve": serve,
    "once": once,
    "explain": explain_name,
    "capture": capture_host,
    "audit": audit_host,
}
