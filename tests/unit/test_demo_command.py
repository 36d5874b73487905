"""`roce-exporter demo` without the extra `[demo]`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from roce_exporter.cli import main

if TYPE_CHECKING:
    import pytest


def test_without_rich_one_line_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    assert main(["demo"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "roce-exporter: demo needs the package rich; install the extra demo, in a clone: pip install '.[demo]'\n"
    )


def test_no_other_command_needs_rich(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    assert main(["once", "--host.simulate=quiet"]) == 0
    assert "roce_port_up{" in capsys.readouterr().out
