"""Standard output of the commands that print."""

from __future__ import annotations

import os
import sys


class OutputError(Exception):
    """Standard output does not take what was asked for: one line that says why."""


def print_text(text: str) -> None:
    """Write to standard output.

    Raises:
        OutputError: it takes nothing: a full disk, or nobody has opened it.
        BrokenPipeError: whoever read it has gone.
    """
    if sys.stdout is None:
        raise OutputError("standard output is closed; give it a place to go to")
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        mute()
        raise OutputError(f"standard output: {error.strerror}; send it elsewhere") from None


def mute() -> None:
    """Nothing more can be said, not even at exit, when Python would write what it still holds."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
