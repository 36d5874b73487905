"""Standard output of the commands that print."""

from __future__ import annotations

import os
import sys

from roce_exporter.errors import UserError


class OutputError(UserError):
    """The output cannot be written: one line that says why."""


def print_text(text: str) -> None:
    """Write to standard output.

    Raises:
        OutputError: standard output cannot be written (disk full or closed).
        BrokenPipeError: the reader has closed the pipe.
    """
    if sys.stdout is None:
        raise OutputError("standard output is closed; redirect it to a file or a terminal")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        mute()
        raise OutputError(f"standard output: {error.strerror}; redirect it elsewhere") from None


def mute() -> None:
    """Discard all further output, including what Python would flush at exit."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
