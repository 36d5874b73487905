"""The pause tree on fabrics whose roots are known. The seeds are others than those that it was written with."""

import pytest
from fabric_model import KINDS, main


@pytest.mark.parametrize(
    "count", [pytest.param(len(KINDS), marks=pytest.mark.ci), pytest.param(500, marks=pytest.mark.nightly)]
)
def test_roots_are_named_and_nothing_else(count, capsys) -> None:
    assert main(count, 1001) == 0, capsys.readouterr().out
