"""Every test is in a tier that imports its file, and no time decides one."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import HUNG_SECONDS

TESTS = Path(__file__).parents[1]
LIMIT = re.compile(
    r"\.(?:acquire|join|settimeout|timeout|wait|wait_for)\((?:[^()]*, )?(\d[\d.]*)\)|\.(?!collector\b)\w+\(.*\btimeout=(\d[\d.]*)"
)


@pytest.mark.ci
def test_no_test_is_in_a_file_that_its_tier_ignores() -> None:
    """`tests/conftest.py` refuses it when all tiers are collected."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def short_limits(text: str) -> list[str]:
    """Waits that end after a number of seconds in which a busy machine may not have done what is waited for."""
    return [
        one[0] for one in LIMIT.finditer(text) if 1 < float((one[1] or one[2]).rstrip(".")) < HUNG_SECONDS
    ]


def test_what_must_happen_has_the_limit_of_what_hangs() -> None:
    """Up to a second is for what must not happen. The lab has a machine of its own."""
    places = [
        place for place in TESTS.rglob("*.py") if not {"lab", "repro", Path(__file__).name} & {*place.parts}
    ]
    assert {str(place): found for place in places if (found := short_limits(place.read_text()))} == {}
    short = [".wait(20)", ".urlopen(x, timeout=60", ".timeout(30)"]
    assert short_limits("\n".join([*short, ".wait(0.2)", ".collector(timeout=2.0)"])) == short
