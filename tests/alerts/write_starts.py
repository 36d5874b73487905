"""Rewrite starts.json: `python tests/alerts/write_starts.py RULES`, where RULES is a file of rules whose alerts are expected.

The comparison is with the rules of commit a8ce78b. After a deliberate change of an alert, give the new rules, and read the diff.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from alert_histories import SCRAPE, USUAL, case_histories, scenario_histories
from alert_starts import STARTS, Spans, fired, metrics_of, read_rules


def as_text(found: dict[str, Spans]) -> str:
    """JSON with one line per alert."""
    parts = [
        f"  {json.dumps(kind)}: {{\n"
        + ",\n".join(f"    {json.dumps(name)}: {json.dumps(spans)}" for name, spans in one.items())
        + "\n  }"
        for kind, one in found.items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    given = read_rules(Path(sys.argv[1]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scenarios = fired(folder, given, scenario_histories(metrics_of(given)), SCRAPE, SCRAPE)
        cases = fired(folder, given, case_histories(), USUAL.step, USUAL.step)
    STARTS.write_text(as_text({"scenarios": scenarios, "cases": cases}))
