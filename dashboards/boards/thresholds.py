"""`alerts/thresholds.yml` as it was read.

`deploy/mixin/generate.py` replaces the values by expressions of Jsonnet before it imports the boards, which therefore only format,
round, add and multiply them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

PLACE = Path(__file__).parents[2] / "alerts" / "thresholds.yml"
_READ: dict[str, dict[str, Any]] = yaml.safe_load(PLACE.read_text(encoding="utf-8"))
ALERTS = _READ["alerts"]
LIMITS = _READ["limits"]
"""Limits by what is measured."""
SHARED = _READ["shared"]
