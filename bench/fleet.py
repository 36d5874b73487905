"""What do the alert rules cost a Prometheus with a fleet of hosts? By `tests/alerts/measure_cost.py`, per number of hosts."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HOSTS = (100, 1000)
"""5,000 hosts take an hour to write down on a small machine; what is measured grows in proportion."""
MEASURE = Path(__file__).parent.parent / "tests/alerts/measure_cost.py"


def main() -> None:
    """Print what each size costs."""
    if not (shutil.which("prometheus") and shutil.which("promtool")):
        print("left out: needs Prometheus (apt-get install prometheus)")
        return
    for hosts in HOSTS:
        subprocess.run([sys.executable, MEASURE, "--hosts", str(hosts)], check=True)  # noqa: S603 - ours


if __name__ == "__main__":
    main()
