"""What the checks find on every recorded host and in every simulated scenario: place, check and state, one line each.

`pytest --rewrite-golden tests/golden/test_findings.py` rewrites `findings.tsv`; read the diff: it shows what a change of a check,
of a limit or of a report makes users read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from recorded import HOSTS, recording

from roce_exporter.cli.entry import main
from roce_exporter.host.simulated.scenarios import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Iterator

GOLDEN = Path(__file__).parent / "findings.tsv"
CASES = {
    **{host: [f"--host.recording={recording(host)}"] for host in HOSTS},
    **{f"simulated {name}": [f"--host.simulate={name}"] for name in SCENARIOS},
}


def sections() -> dict[str, str]:
    """The golden lines by host."""
    found: dict[str, str] = {}
    for line in GOLDEN.read_text().splitlines(keepends=True) if GOLDEN.exists() else ():
        host, _, rest = line.partition("\t")
        found[host] = found.get(host, "") + rest
    return found


def lines(host: str, capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    def document(*argv: str) -> dict[str, Any]:
        main([*argv, "--format=json", *CASES[host]])
        out = capsys.readouterr().out
        return json.loads(out) if out else {}

    since = ["--since=3m"] if host.startswith("simulated") else []
    for one in document("audit").get("checks", ()):
        if one["status"] != "ok":
            yield f"settings\t{one['device']}/{one['port']} {one['netdev']}\t{one['check']}\t{one['status']}"
    for one in document("doctor").get("items", ()):
        if one["status"] != "ok":
            yield f"setup\t{one['topic']}\t{one['text']}\t{one['status']}"
    health = document("diagnose", *since)
    for one in health.get("findings", ()):
        yield f"health\t{one['device']}/{one['port']}\t{one['cause']}\t{one['side']}"
    for text in health.get("unseen", ()):
        yield f"not seen\t\t{text}\t"


@pytest.mark.parametrize("host", CASES)
def test_what_is_found_on_a_host_is_known(
    host: str, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    found = "".join(f"{line}\n" for line in lines(host, capsys))
    if request.config.getoption("--rewrite-golden"):
        known = {**sections(), host: found}
        GOLDEN.write_text(
            "".join(
                f"{name}\t{line}\n" for name in CASES if name in known for line in known[name].splitlines()
            )
        )
    assert found == sections().get(host, "")
