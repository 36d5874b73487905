"""Rewrite fired.yml from what fires now, and the messages in docs/alerts.md: `python tests/alerts/write_fired.py`; read the diff."""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest does

import yaml
from alert_checks import FIRED, observed, run_case
from alert_scenario import CASES
from tools import found as found_at

if __name__ == "__main__":
    entries, wrong = {}, []
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            found = run_case(Path(folder), case)
        try:
            entries |= observed(case, found)
        except (KeyError, ValueError):
            wrong.append(
                f"{case.title}: not one alert in each cluster, or none when the text is read: {found.of(case.alert)}"
            )
    if wrong:
        sys.exit("\n".join(wrong))
    FIRED.write_text(yaml.safe_dump(entries, width=1000, sort_keys=False, allow_unicode=True))
    if found_at("alertmanager"):
        import test_alertmanager as messages  # it reads what was just written

        before, _, after = messages.DOCUMENT.read_text().split(messages.MARK)
        with tempfile.TemporaryDirectory() as folder:
            shown = messages.shown(Path(folder))
        messages.DOCUMENT.write_text(messages.MARK.join((before, f"\n{shown}", after)))
