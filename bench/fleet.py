"""What does a fleet cost a Prometheus with our rules? `fleet_live.py` for several numbers of one-port hosts."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HOSTS = (100, 1000, 5000)
FLAGS = ("--ports=1", "--every=60", "--seconds=480", "--without-disk")
"""Eight minutes each, so that windows of five minutes are full."""
LIVE = Path(__file__).with_name("fleet_live.py")


def main() -> None:
    """Print the cost of each size."""
    if not shutil.which("prometheus"):
        print("left out: needs Prometheus (apt-get install prometheus)")
        return
    for hosts in HOSTS:
        subprocess.run([sys.executable, LIVE, f"--hosts={hosts}", *FLAGS], check=True)  # noqa: S603 - our own script


if __name__ == "__main__":
    main()
