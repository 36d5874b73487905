"""One event, one line, whatever the message holds; and notifications to systemd."""

import asyncio
import io
import json
import logging
import sys

import pytest

from roce_exporter.cli import output
from roce_exporter.cli.daemon import notify
from roce_exporter.cli.output import LineFormatter


def record(message: str, level: int = logging.WARNING) -> logging.LogRecord:
    return logging.LogRecord("roce_exporter.collect", level, "f.py", 1, message, (), None)


@pytest.mark.parametrize(
    "message", ["plain", "two words", 'a "quote"', "line\nbreak", "tab\tand \\", "=", ""]
)
def test_every_message_is_one_line(message) -> None:
    line = LineFormatter("logfmt").format(record(message))
    assert "\n" not in line
    assert "level=warn logger=collect msg=" in line
    assert json.loads(LineFormatter("json").format(record(message)))["msg"] == message


def test_a_traceback_is_a_field() -> None:
    try:
        int("boom")
    except ValueError:
        event = record("fault")
        event.exc_info = sys.exc_info()
    for form in ("logfmt", "json"):
        line = LineFormatter(form).format(event)
        assert "\n" not in line
        assert "ValueError: invalid literal" in line


@pytest.mark.parametrize("address", ["", "nonsense", "/no/such/socket", "@roce-nobody-listens"])
def test_without_systemd_no_notification_is_sent(monkeypatch, address) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    assert notify("READY=1") is False


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("terminal", [_Terminal(), io.StringIO()])
async def test_what_takes_long_shows_that_it_works_on_a_terminal_alone(terminal, monkeypatch) -> None:
    monkeypatch.setattr(output, "SILENCE", 0.0)
    monkeypatch.setattr(output, "REFRESH", 0.01)
    monkeypatch.setattr("sys.stderr", terminal)
    async with output.progress("reading this host"):
        for _ in range(3):
            await asyncio.sleep(0)
    assert terminal.getvalue().endswith("\r\033[K" if terminal.isatty() else "")
    assert ("reading this host: 0 s" in terminal.getvalue()) is terminal.isatty()
