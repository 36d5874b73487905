"""Log lines as logfmt or JSON on standard error, one event per line, in the format of Prometheus' own programs."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}


class LineFormatter(logging.Formatter):
    """One line per event with ts (RFC 3339, UTC), level, logger and msg; a traceback becomes the field `error`.

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


def set_up_logging(level: str, form: str) -> None:
    """Log to standard error, from this level up."""
    target = logging.StreamHandler(sys.stderr)
    target.setFormatter(LineFormatter(form))
    logging.basicConfig(level=LEVELS[level], handlers=[target], force=True)


def _quoted(text: str) -> str:
    plain = text.isprintable() and text and not any(mark in text for mark in ' ="\\')
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())
