#!/usr/bin/python3 -IB
"""The command of the Debian package: the library beside it, and nothing of the machine's own site-packages before that."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))

from roce_exporter.cli import main

if __name__ == "__main__":
    sys.exit(main())
