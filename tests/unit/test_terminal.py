"""What commands write to a terminal and to a pipe: that they are at work, colours, and one shape of JSON."""

import io
import json
import sys
from pathlib import Path

import pytest

from roce_exporter.cli import main, output
from roce_exporter.cli.commands import COMMANDS

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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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
