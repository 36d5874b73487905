"""`roce-exporter`: parses the flags and runs one command, for example `serve`; `cli.commands` lists them.

docs/diagnosis.md has the exit codes. 2: invalid input (one sentence on standard error); 1: also an internal error, with its traceback.
"""

import asyncio
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

from roce_exporter.cli.commands import COMMANDS
from roce_exporter.cli.options import parse_options
from roce_exporter.cli.output import complain, mute, set_up_logging
from roce_exporter.errors import UserError

UNUSABLE = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code. Invalid input is reported as one line on stderr."""
    warnings.simplefilter("ignore", FutureWarning)  # of a user's regular expression, in lines of this program
    try:
        options = parse_options(sys.argv[1:] if argv is None else argv)
        command = COMMANDS[options.command]
        set_up_logging(options.log_level or command.log_level, options.log_format)
        # Each command imports only what it needs.
        module, _, name = command.run.partition(":")
        run = getattr(import_module(f"roce_exporter.cli.{module}"), name)
        if not command.has_host:
            status: int = asyncio.run(run(options))
            return status
        parts = import_module("roce_exporter.cli.parts")
        status = asyncio.run(run(options, parts.open_kernel(options)))
    except UserError as error:
        complain(str(error))
        return UNUSABLE
    except BrokenPipeError:
        # The reader of our output has closed it, as `head` does.
        mute()
        return 0
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return status
