"""The measurement of a fleet with a real Prometheus, as small as it can be: docs/operating.md has the results of the large ones."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from deploy_tools import ROOT, printed, ran
from tools import need

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.nightly

LIVE = ROOT / "bench/fleet_live.py"
HOSTS, SENDERS = 5, 2
FLEET = ("--set=lean", f"--hosts={HOSTS}", "--ports=1", "--every=3", "--seconds=60")


class Measured(NamedTuple):
    """The result of a run, and the table it printed."""

    result: dict[str, Any]
    table: str


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Two of five hosts send a storm, one is paused."""
    need("prometheus")
    folder = tmp_path_factory.mktemp("fleet")
    saved = folder / "result.json"
    command = [sys.executable, LIVE, *FLEET, f"--result={saved}"]
    done = ran(*command)
    assert done.returncode == 0, done.stderr
    return Measured(json.loads(saved.read_text()), done.stdout)


def test_every_host_is_scraped_every_rule_evaluated_and_each_storm_pages_once(measured: Measured) -> None:
    result, figures = measured.result, measured.result["figures"]
    assert (figures["hosts"], figures["scrapes_failed"], figures["samples_refused"]) == (HOSTS, 0, 0)
    assert figures["scrapes"] >= HOSTS * 5
    assert figures["rules"] > 100
    assert figures["iterations"] >= figures["groups"]
    assert figures["rule_failures"] == 0
    assert set(result["groups"]) >= {"roce-storm", "roce-pause", "roce-dashboards"}
    assert result["expected_storm_pages"] == SENDERS
    assert (result["fired"]["page"]["RocePfcStormTransmitted"], result["pages_repeated"]) == (SENDERS, 0)


def test_the_cost_is_measured_and_the_boards_are_queried(measured: Measured) -> None:
    result, used, disk = measured.result, measured.result["usage"], measured.result["disk"]
    assert used["prometheus_cores"] > 0
    assert used["resident_most"] > 10e6
    assert disk["samples"] > float(result["figures"]["samples_per_scrape"]) * HOSTS
    assert disk["bytes_per_sample"] > 0.5
    assert set(result["queries"]) == {"roce-fleet", "roce-host"}
    assert result["failed_queries"] == []
    # what is recorded every two minutes only is not there yet
    assert result["answered"]["roce-fleet"] > 15
    assert result["answered"]["roce-host"] > 30


def test_saved_results_print_the_same_table(measured: Measured, tmp_path: Path) -> None:
    saved = tmp_path / "result.json"
    saved.write_text(json.dumps(measured.result))
    assert printed(sys.executable, LIVE, "--table", saved) == measured.table
