"""Recorded hosts in the sets lean and standard, byte for byte, and read by independent tools. `--rewrite-golden` rewrites them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from observed import observe, samples
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from roce_exporter.catalog.row import LEAN, STANDARD, MetricSet
from roce_exporter.exposition import Format, Renderer
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.recording.recorded import load_recording

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client.metrics_core import Metric

GOLDEN = Path(__file__).parent
RECORDINGS = GOLDEN.parent / "recordings"
HOSTS = ("mlx5-pair", "mlx5-lag", "bnxt", "ionic", "irdma", "sick")
"""Two ports with PFC, a LAG, one host per large vendor, and one with broken sources."""
EACH = pytest.mark.parametrize("host", HOSTS)
SETS = pytest.mark.parametrize("metric_set", [LEAN, STANDARD])


def golden_file(host: str, metric_set: MetricSet) -> Path:
    return GOLDEN / metric_set / f"{host}.prom"


async def show(host: str, metric_set: MetricSet) -> dict[Format, bytes]:
    """One exposition in every format."""
    _, (observation,) = await observe(load_recording(str(RECORDINGS / host)))
    selected = ServedSeries(metric_set).select(observation.samples)
    return {form: Renderer().render(selected, form) for form in Format}


@EACH
@SETS
async def test_a_recorded_host_matches_its_golden_file(
    host: str, metric_set: MetricSet, request: pytest.FixtureRequest
) -> None:
    text = (await show(host, metric_set))[Format.TEXT]
    golden = golden_file(host, metric_set)
    if request.config.getoption("--rewrite-golden"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_bytes(text)
    assert text.decode().splitlines() == golden.read_text().splitlines()
    assert text == golden.read_bytes()


@EACH
async def test_every_value_is_that_of_the_next_set(host: str) -> None:
    """Full is the whole golden file; only what stands for all devices is not in it."""
    whole = samples((GOLDEN / f"{host}.prom").read_bytes())
    standard, lean = (samples(golden_file(host, one).read_bytes()) for one in (STANDARD, LEAN))
    for smaller, larger in ((lean, standard), (standard, whole)):
        more = {series: value for series, value in smaller.items() if larger.get(series) != value}
        assert all("_metric_set_info" in series or "device=" not in series for series in more), more
    assert len(lean) < len(standard) < len(whole)


@EACH
@SETS
async def test_both_parsers_read_it(host: str, metric_set: MetricSet) -> None:
    shown = await show(host, metric_set)
    literal = {series: float(value) for series, value in samples(shown[Format.TEXT]).items()}
    text, strict = shown[Format.TEXT].decode(), (shown[Format.OPENMETRICS] + b"# EOF\n").decode()
    assert number_of(text_string_to_metric_families(text)) == len(literal)
    assert number_of(openmetrics.text_string_to_metric_families(strict)) == len(literal)
    assert samples(shown[Format.OPENMETRICS]) == samples(shown[Format.TEXT])


def number_of(families: Iterable[Metric]) -> int:
    return sum(len(family.samples) for family in families)


@EACH
@SETS
def test_promtool_finds_nothing_in_it(host: str, metric_set: MetricSet) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        if os.environ.get("CI") == "true":
            pytest.fail("promtool is not installed; CI needs it")
        pytest.skip("promtool is not installed (apt-get install prometheus)")
    with golden_file(host, metric_set).open("rb") as content:
        result = subprocess.run(
            [promtool, "check", "metrics"], stdin=content, capture_output=True, text=True, check=False
        )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_every_golden_file_belongs_to_a_recording() -> None:
    expected = [golden_file(host, one) for one in (LEAN, STANDARD) for host in HOSTS]
    assert sorted(GOLDEN.glob("*/*.prom")) == sorted(expected)
