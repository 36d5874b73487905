"""`check health --prometheus` against a real Prometheus that holds the history of a fault: the same findings as from the samples."""

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from changed_host import healthy_moments
from fault_histories import fault_history
from fault_table import load_faults
from servers import prometheus
from tools import need

from roce_exporter.catalog import CATALOG
from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.cli.entry import main
from roce_exporter.view.history import History

pytestmark = pytest.mark.ci

LABELS = {row.name: row.labels for row in CATALOG}
INSTANCE = "gpu-007:10123"
HOLES = 'a "quoted" \\ value'


def openmetrics(history: History, end: float) -> Iterator[str]:
    """The history as OpenMetrics with timestamps, the newest sample at `end`; unknown labels are absent, as in a scrape."""
    shift = end - history[-1].time
    names = sorted({name for one in history for name in one.values})
    for name in names:
        yield f"# TYPE {name} unknown"
        for one in history:
            for values, value in one.values.get(name, {}).items():
                pairs = {"instance": INSTANCE, "job": "roce", **dict(zip(LABELS[name], values, strict=True))}
                labels = ",".join(f"{label}={json.dumps(text)}" for label, text in pairs.items() if text)
                yield f"{name}{{{labels}}} {value!r} {one.time + shift:.3f}"
    yield "# EOF\n"


@pytest.fixture(scope="module")
def history(tmp_path_factory) -> History:
    fault = next(fault for fault in load_faults() if fault.id == "dead-peer-mlx5")

    async def of_fault() -> History:
        return await fault_history(fault, await healthy_moments(tmp_path_factory.mktemp("healthy")))

    return asyncio.run(of_fault())


@pytest.fixture(scope="module")
def url(tmp_path_factory, history) -> Iterator[str]:
    """A Prometheus with this history in its database."""
    promtool = need("promtool")
    folder: Path = tmp_path_factory.mktemp("prometheus")
    (folder / "history.txt").write_text("\n".join(openmetrics(history, time.time() - 1)))
    blocks = (promtool, "tsdb", "create-blocks-from", "openmetrics", folder / "history.txt", folder / "data")
    subprocess.run(blocks, check=True, capture_output=True)
    with prometheus(folder, {}) as running:
        yield running.url
    shutil.rmtree(folder / "data")


def test_the_findings_are_those_of_the_samples(url, history, capsys) -> None:
    assert main(["check", "health", f"--prometheus={url}", "--format=json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    found = [(one["device"], one["port"], one["side"], one["check"]) for one in findings]
    expected = [(one.device, one.port, one.side.value, one.check) for one in diagnose(history).findings]
    assert expected[0][3] == "retries_exceeded"
    assert found == expected


def test_another_instance_is_not_found(url, capsys) -> None:
    assert main(["check", "health", f"--prometheus={url}", f"--target={HOLES}"]) == 2
    said = capsys.readouterr().err
    assert said.endswith(f"in this time; instances are '{INSTANCE}'\n")
