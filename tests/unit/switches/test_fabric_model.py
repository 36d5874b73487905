"""The pause tree on fabrics whose roots are known. The seeds are others than those that it was written with."""

from __future__ import annotations

import pytest
from fabric_model import KINDS, main


@pytest.mark.parametrize(
    "count", [pytest.param(len(KINDS), marks=pytest.mark.ci), pytest.param(500, marks=pytest.mark.nightly)]
)
def test_roots_are_named_and_nothing_else(count: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(count, 1001) == 0, capsys.readouterr().out
