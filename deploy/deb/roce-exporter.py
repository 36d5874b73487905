#!/usr/bin/python3 -IB
"""The command of the Debian package. The package's own library comes before the system's site-packages."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

from roce_exporter.cli import main

if __name__ == "__main__":
    sys.exit(main())
