"""Runs inside a clean root: `storm_in_root.py COMMAND...` serves a simulated host and scrapes it until a PFC storm is counted.

Standard library only. Prints the version of Python that runs it; exit code 1 if no storm was counted in three minutes.
"""

import re
import subprocess
import sys
import time
import urllib.request

SEED = "--host.simulate-seed=25"
"""The first storm of this seed begins 20 s after the start."""
FLAGS = ("serve", "--host.simulate=pfc-storm", SEED, "--web.listen-address=127.0.0.1:0")
STORMS = re.compile(r"^roce_pfc_storms_total\{.*\} ([1-9]\d*)", re.MULTILINE)


def main() -> int:
    """Whether a storm was counted, as an exit code."""
    server = subprocess.Popen([*sys.argv[1:], *FLAGS], stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr
        found = next(match for line in server.stderr if (match := re.search(r"127\.0\.0\.1:\d+", line)))
        end = time.monotonic() + 180
        while time.monotonic() < end:
            with urllib.request.urlopen(f"http://{found[0]}/metrics", timeout=300) as answer:
                if STORMS.search(answer.read().decode()):
                    sys.stdout.write(f"Python {sys.version.split()[0]}: a storm was counted\n")
                    return 0
            time.sleep(1)  # a scrape interval
    finally:
        server.kill()
    return 1


if __name__ == "__main__":
    sys.exit(main())
