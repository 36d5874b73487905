"""Tries each failed test of a run once more, alone: `python tests/again.py CACHE [OPTION...]`.

CACHE is the run's cache folder of pytest, the options are for pytest: `--tier=nightly` draws the random example that has failed again.

A test that passes now is flaky: the run passes, and `FLAKY name` names it. The run fails if a test fails again, if a flaky test is one of the
known ones of docs/testing.md, and without another try if more than `LIMIT` tests have failed.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

LIMIT = 10
KNOWN = Path("docs/testing.md")


def known_flaky(document: str) -> set[str]:
    """The tests in the list below the heading "Known flaky tests"."""
    section = re.search(r"^## Known flaky tests\n(.*?)(?=^## |\Z)", document, re.MULTILINE | re.DOTALL)
    assert section, f"{KNOWN} has no list of known flaky tests"
    return set(re.findall(r"^\* `(.+?)`", section[1], re.MULTILINE))


def passes(test: str, options: tuple[str, ...]) -> bool:
    """Whether a test passes in a process of its own. Not `-m pytest`, which would import the checkout's package instead of the wheel's."""
    pytest = Path(sys.executable).with_name("pytest")
    command = [pytest, "-q", "-p", "no:cacheprovider", *options, test]
    return subprocess.run(command, check=False).returncode == 0


def main(cache: str, *options: str) -> int:
    """The exit code of the run: 0, or 1."""
    known = known_flaky(KNOWN.read_text())
    failed = sorted(json.loads(Path(cache, "v/cache/lastfailed").read_text()))
    if len(failed) > LIMIT:
        print(f"{len(failed)} tests have failed, more than {LIMIT}: none is tried again")
        return 1
    flaky = [test for test in failed if passes(test, options)]
    for test in flaky:
        print(f"FLAKY {test}" + (f": a known one, see {KNOWN}" if test in known else ""))
    print(f"{len(failed)} failed, {len(flaky)} of them flaky")
    return int(len(flaky) < len(failed) or not known.isdisjoint(flaky))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
