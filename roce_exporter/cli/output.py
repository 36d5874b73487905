"""What a command writes: its text on standard output, log lines and, on a terminal, what it is at on standard error."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
import os
import re
import sys
import time
import traceback
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

from roce_exporter.errors import UserError
from roce_exporter.words import terminal_width, wrapped

SILENCE = 2.0  # seconds of work that need no sign of life
REFRESH = 1.0
REPEATED_SECONDS = 600.0  # in which a message with the same traceback is logged once
MOST_KINDS = 1000  # that are remembered: a message may name what a client asked for


class OutputError(UserError):
    """The output cannot be written: one line that says why."""


_CONTROL = re.compile(
    r"(?!\x1b\[[0-9]{1,2}m)[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""What moves a terminal's cursor, changes it or turns its text around, except colours."""


def harmless(text: str) -> str:
    """The text as a terminal may get it."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def print_text(text: str) -> None:
    """Write to standard output; names from outside do nothing to a terminal, and none is an error.

    Raises:
        OutputError: standard output cannot be written (disk full or closed).
        BrokenPipeError: the reader has closed the pipe.
    """
    if sys.stdout is None:
        raise OutputError("standard output is closed; redirect it to a file or a terminal")
    if sys.stdout.isatty():
        text = harmless(text)
    try:
        sys.stdout.write(text.encode("utf-8", "backslashreplace").decode())
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        mute()
        raise OutputError(f"standard output: {error.strerror}; redirect it elsewhere") from None


def print_document(document: object) -> None:
    """Write the document of --format=json."""
    print_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def complain(text: str) -> None:
    """Write one message to standard error, wrapped to the width of its terminal."""
    line = f"roce-exporter: {harmless(' '.join(text.split()))}"
    sys.stderr.write("\n".join(wrapped(line, terminal_width(sys.stderr))) + "\n")


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


LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}


class LineFormatter(logging.Formatter):
    """Logfmt or JSON as Prometheus' own programs write it: one line per event with ts (RFC 3339, UTC), level, logger and msg; a traceback becomes the field `error`.

    Fields of an event's own are passed as `extra={"fields": {name: text}}`.
    """

    def __init__(self, form: str) -> None:
        super().__init__()
        self._is_json = form == "json"

    def format(self, record: logging.LogRecord) -> str:
        """The line, without a newline."""
        fields = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": "warn" if record.levelno == logging.WARNING else record.levelname.lower(),
            "logger": record.name.removeprefix("roce_exporter."),
            "msg": record.getMessage(),
        }
        fields |= getattr(record, "fields", {})
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        if self._is_json:
            return json.dumps(fields, ensure_ascii=not all(map(str.isprintable, fields.values())))
        return " ".join(f"{name}={_quoted(text)}" for name, text in fields.items())


def without_repeats() -> Callable[[logging.LogRecord], bool]:
    """A filter that drops a message with the traceback of one of the last minutes: `roce_exporter_read_errors_total` counts all."""
    logged: dict[tuple[str, str], float] = {}

    def is_new(record: logging.LogRecord) -> bool:
        if not record.exc_info or (error := record.exc_info[1]) is None:
            return True
        place = str(traceback.extract_tb((error.__cause__ or error).__traceback__, limit=-1))
        kind, now = (record.getMessage(), place), time.monotonic()
        if is_first := now - logged.get(kind, -math.inf) >= REPEATED_SECONDS:
            if len(logged) >= MOST_KINDS:
                logged.clear()
            logged[kind] = now
        return is_first

    return is_new


def set_up_logging(level: str, form: str) -> None:
    """Log to standard error, from this level up; a fault that repeats, at each read or for each client, does not fill the log."""
    target = logging.StreamHandler(sys.stderr)
    target.addFilter(without_repeats())
    target.setFormatter(LineFormatter(form))
    logging.basicConfig(level=LEVELS[level], handlers=[target], force=True)


def _quoted(text: str) -> str:
    plain = text.isprintable() and text and not any(mark in text for mark in ' ="\\')
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())
