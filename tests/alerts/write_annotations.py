"""Rewrite annotations.yml from the alerts that fire now: `python tests/alerts/write_annotations.py`; read the diff."""

from __future__ import annotations

import tempfile
from pathlib import Path

import yaml
from alert_cases import CASES
from alert_promtool import ANNOTATIONS, annotations_now

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        texts = {case.title: annotations_now(case, Path(folder)) for case in CASES}
    ANNOTATIONS.write_text(yaml.safe_dump(texts, width=1000, sort_keys=False, allow_unicode=True))
