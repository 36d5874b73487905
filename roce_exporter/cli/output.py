"""Standard output of the commands that print, and on a terminal what they are at."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
import time
from typing import TYPE_CHECKING

from roce_exporter.errors import UserError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SILENCE = 2.0  # seconds of work that need no sign of life

REFRESH = 1.0


class OutputError(UserError):
    """The output cannot be written: one line that says why."""


_CONTROL = re.compile(
    r"(?!\x1b\[[0-9]{1,2}m)[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""What moves a terminal's cursor, changes it or turns its text around, except colours."""


def print_text(text: str) -> None:
    """Write to standard output; names from outside do nothing to a terminal, and none is an error.

    Raises:
        OutputError: standard output cannot be written (disk full or closed).
        BrokenPipeError: the reader has closed the pipe.
    """
    if sys.stdout is None:
        raise OutputError("standard output is closed; redirect it to a file or a terminal")
    if sys.stdout.isatty():
        text = _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    try:
        sys.stdout.write(text.encode("utf-8", "backslashreplace").decode())
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


@contextlib.asynccontextmanager
async def progress(text: str) -> AsyncIterator[None]:
    """Show this text and the seconds so far on standard error while the block takes long, and remove it; only on a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    task = asyncio.create_task(_show(text))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def _show(text: str) -> None:
    begun = time.monotonic()
    await asyncio.sleep(SILENCE)
    try:
        while True:
            sys.stderr.write(f"\r\033[K{text}: {time.monotonic() - begun:.0f} s")
            sys.stderr.flush()
            await asyncio.sleep(REFRESH)
    finally:
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()
