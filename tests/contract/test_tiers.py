"""Every test is in exactly one tier, although files of other tiers are not even imported."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.ci, pytest.mark.timeout(600)]


def collected(*options: str) -> list[str]:
    """The names of the tests that pytest would run."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *options]
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 0, result.stdout[-2000:]
    return [line for line in result.stdout.splitlines() if "::" in line]


def test_every_test_is_in_one_tier() -> None:
    tiers = {tier: collected(f"--tier={tier}") for tier in ("test", "ci", "nightly")}
    assert all(tiers.values())
    assert Counter(chain.from_iterable(tiers.values())) == Counter(collected())
