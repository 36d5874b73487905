"""Write the dashboards: `python dashboards/generate.py`.

The contents are in `boards/`. The limits come from `alerts/thresholds.yml`, so run this after `python alerts/generate.py`.
"""

# ruff: noqa: INP001 - a script next to its output, not a package
from __future__ import annotations

from pathlib import Path

from boards.written import files


def main() -> None:
    """Write every file below this folder."""
    for name, text in files():
        place = Path(__file__).parent / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
