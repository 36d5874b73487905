"""Every test is in a tier that imports its file."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.ci
def test_no_test_is_in_a_file_that_its_tier_ignores() -> None:
    """`tests/conftest.py` refuses it when all tiers are collected."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
