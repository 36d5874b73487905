"""What the checks find on every recorded host and in every simulated scenario: place, check and state, one line each.

`pytest --rewrite-golden tests/golden/test_findings.py` rewrites `findings.tsv`; read the diff: it shows what a change of a check,
of a limit or of a report makes users read.
"""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from recorded import HOSTS, recording

from roce_exporter.cli import parts
from roce_exporter.cli.entry import main
from roce_exporter.host.simulated.scenarios import SCENARIOS
from roce_exporter.owners.surveyor import SurveyLimits

GOLDEN = Path(__file__).parent / "findings.tsv"
CASES = {
    **{host: [f"--host.recording={recording(host)}"] for host in HOSTS},
    **{f"simulated {name}": [f"--host.simulate={name}"] for name in SCENARIOS},
}

PLAYED = [f"simulated {name}" for name in SCENARIOS]
SIMULATED = {True: [pytest.mark.slow], False: [pytest.mark.slow, pytest.mark.ci]}
"""A simulated host costs four seconds of CPU time, a recorded one a tenth: the first tier plays one."""


def sections() -> dict[str, str]:
    """The golden lines by host."""
    found: dict[str, str] = {}
    for line in GOLDEN.read_text().splitlines(keepends=True) if GOLDEN.exists() else ():
        host, _, rest = line.partition("\t")
        found[host] = found.get(host, "") + rest
    return found


def lines(host: str, capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    for topic in ("setup", "settings", "health"):
        since = ["--since=3m"] if host.startswith("simulated") and topic == "health" else []
        status = main(["check", topic, "--format=json", "--collect.timeout=600", *since, *CASES[host]])
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        for one in document["findings"]:
            if one["status"] != "ok" or topic == "health":
                place = f"{one['device']}/{one['port']} {one['netdev']}".strip()
                said = one["title"] if topic == "setup" else one["check"]
                yield f"{topic}\t{place}\t{said}\t{one['status']}\t{one['side']}"
        for gap in document["not_checked"]:
            if gap["needed"]:
                yield f"{topic}\t{gap['device']}/{gap['port']}\t{gap['what']}\tnot seen\t"
        details = sum(not gap["needed"] for gap in document["not_checked"])
        yield f"{topic}\t\texit code\t{status}\t{details} details not seen"


@pytest.mark.parametrize(
    "host",
    [
        pytest.param(one, marks=SIMULATED[one == "simulated slow-receiver"]) if one in PLAYED else one
        for one in CASES
    ],
)
def test_what_is_found_on_a_host_is_known(host, capsys, request, monkeypatch) -> None:
    # On a busy machine sixteen devices' owners once took longer than the five seconds after which a round is a fault.
    monkeypatch.setattr(parts, "SurveyLimits", partial(SurveyLimits, timeout=600))
    found = "".join(f"{line}\n" for line in lines(host, capsys))
    if request.config.getoption("--rewrite-golden"):
        known = {**sections(), host: found}
        GOLDEN.write_text(
            "".join(
                f"{name}\t{line}\n" for name in CASES if name in known for line in known[name].splitlines()
            )
        )
    assert found == sections().get(host, "")
