"""What commands write to a terminal and to a pipe: log lines, that they are at work, colours, one shape of JSON; and notifications to systemd."""

import asyncio
import io
import json
import logging
import sys
from pathlib import Path

import pytest

from roce_exporter.cli import main, output
from roce_exporter.cli.commands import COMMANDS
from roce_exporter.cli.daemon import notify
from roce_exporter.cli.output import MOST_KINDS, REPEATED_SECONDS, LineFormatter, without_repeats


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


def test_a_fault_that_repeats_is_logged_once_in_ten_minutes(monkeypatch) -> None:
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    said, log = io.StringIO(), logging.getLogger("roce_exporter.collect")
    target = logging.StreamHandler(said)
    target.setFormatter(LineFormatter("logfmt"))
    target.addFilter(without_repeats())
    monkeypatch.setattr(log, "handlers", [target])
    monkeypatch.setattr(log, "propagate", False)

    def fail(text: str) -> None:
        try:
            int(text)
        except ValueError:
            log.exception("fault in source %s", text)

    def lines() -> list[str]:
        new = said.getvalue().splitlines()
        said.seek(0)
        said.truncate()
        return new

    for text in ("a", "b", "a"):
        fail(text)
    assert len(lines()) == 2, "what is about another device is not dropped"
    try:
        float("x")
    except ValueError:
        log.exception("fault in source a")
    log.warning("no fault")
    log.warning("no fault")
    assert len(lines()) == 3
    now += REPEATED_SECONDS - 1
    fail("a")
    assert lines() == []
    now += 1
    fail("a")
    assert len(lines()) == 1
    for number in range(MOST_KINDS):
        fail(f"x{number}")
    assert len(lines()) == MOST_KINDS
    fail("a")
    assert len(lines()) == 1, "so many were not remembered"


@pytest.mark.parametrize("address", ["", "nonsense", "/no/such/socket", "@roce-nobody-listens"])
def test_without_systemd_no_notification_is_sent(monkeypatch, address) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    assert notify("READY=1") is False


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("terminal", [Terminal(), io.StringIO()])
async def test_what_takes_long_shows_that_it_works_on_a_terminal_alone(terminal, monkeypatch) -> None:
    monkeypatch.setattr(output, "SILENCE", 0.0)
    monkeypatch.setattr(output, "REFRESH", 0.01)
    monkeypatch.setattr("sys.stderr", terminal)
    async with output.progress("reading this host"):
        for _ in range(3):
            await asyncio.sleep(0)
    assert terminal.getvalue().endswith("\r\033[K" if terminal.isatty() else "")
    assert ("reading this host: 0 s" in terminal.getvalue()) is terminal.isatty()


WRONG = "--host.simulate=misconfigured"
PORTS = "--host.simulate-ports=mlx5"
AT_WORK = {
    "once": ("once", WRONG, PORTS),
    "capture": ("capture", WRONG, PORTS, "--output={folder}/a.txt"),
    "explain": ("explain", "np_cnp_sent", WRONG, PORTS),
    "check": ("check", "settings", WRONG, PORTS),
    "wire": ("wire", "{folder}/a.pcap", "--format=json"),
    "tool translate": ("tool", "translate", "{folder}/a.promql", "{folder}/b.promql", "--in-place"),
}
"""The commands that read something and end. `check switches` and `probe --bandwidth` are tested with their switches and hosts."""
UNTIL_STOPPED = {"serve", "probe", "demo", "tool namespaces"}
PRINTS = {"tool otel-config"}
TOPICS = ("setup", "settings")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(output, "SILENCE", 0.0)
    for name in ("a.promql", "b.promql"):
        (tmp_path / name).write_text("node_infiniband_link_downed_total")
    (tmp_path / "a.pcap").write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"))
    return tmp_path


def words(command: str, folder: Path) -> list[str]:
    return [word.format(folder=folder) for word in AT_WORK[command]]


def test_every_command_is_in_a_table() -> None:
    assert set(COMMANDS) == AT_WORK.keys() | UNTIL_STOPPED | PRINTS


@pytest.mark.parametrize("command", AT_WORK)
def test_a_terminal_shows_that_a_command_is_at_work_and_nothing_of_it_is_left(
    command, folder, monkeypatch
) -> None:
    errors = Terminal()
    monkeypatch.setattr(sys, "stderr", errors)
    main(words(command, folder))
    shown, *_ = errors.getvalue().split("\r\033[K")[1:]
    assert shown.endswith(": 0 s")
    assert "\r" not in errors.getvalue().rpartition("\r\033[K")[2]


@pytest.mark.parametrize("command", AT_WORK)
def test_a_pipe_and_a_file_get_text_alone(command, folder, monkeypatch, capsys) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    main(words(command, folder))
    assert "\x1b" not in "".join(capsys.readouterr())


def test_a_terminal_gets_colours(folder, monkeypatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(words("check", folder)) == 1
    assert "\x1b[" in screen.getvalue()


def test_every_topic_has_the_same_document(capsys) -> None:
    documents = []
    for topic in TOPICS:
        main(["check", topic, WRONG, PORTS, "--format=json"])
        documents.append(json.loads(capsys.readouterr().out))
    assert len({tuple(one) for one in documents}) == 1
    assert len({tuple(finding) for one in documents for finding in one["findings"]}) == 1
