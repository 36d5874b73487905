"""The command: its plan, its mistakes, and a scrape of a running prober."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from recorded import recording

from roce_exporter.cli.entry import main

if TYPE_CHECKING:
    from pathlib import Path

GROUPS = [
    {
        "targets": [f"10.0.{rack}.{number}" for number in (1, 2)],
        "labels": {"rack": f"r{rack}", "host": f"h{rack}"},
    }
    for rack in (1, 2)
]


@pytest.fixture
def targets(tmp_path: Path) -> str:
    (tmp_path / "ports.json").write_text(json.dumps(GROUPS))
    return f"--probe.targets={tmp_path / 'ports.json'}"


def test_the_plan_of_a_host_is_a_table(targets: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", targets, "--probe.plan=h1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["FROM", "ADDRESS", "RAIL", "TO", "ADDRESS", "SCOPE", "PATHS"]
    assert [line.split() for line in lines[1:3]] == [
        ["h1", "10.0.1.1", "h1", "10.0.1.2", "rack", "2"],
        ["h1", "10.0.1.1", "h2", "10.0.2.1", "fabric", "8"],
    ]
    assert len(lines) == 7


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--probe.plan=h9"], "--probe.plan=h9: is not in the list"),
        (["--probe.targets=/missing.json"], "/missing.json: No such file or directory"),
        ("probe.key-file: /missing", "probe.key-file=/missing: No such file or directory"),
        ("probe.key-file: /dev/null", "has 0 characters; a key needs at least 16"),
        ("probe.allow: [10.0.0.0/99]", "probe.allow=10.0.0.0/99: is no network"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    targets: str, arguments: list[str] | str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if isinstance(arguments, str):
        (tmp_path / "config.yml").write_text(arguments)
        arguments = [f"--config.file={tmp_path / 'config.yml'}"]
    host = f"--host.recording={recording('mlx5-pair')}"
    assert main(["probe", host, targets, *arguments]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
