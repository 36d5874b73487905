"""Every recorded host through the whole pipeline, byte for byte, and parsed by independent tools.

`pytest --rewrite-golden` rewrites the golden files; read the diff.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from observed import observe, samples
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from roce_exporter.exposition import Format
from roce_exporter.recording.recorded import load_recording

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client.metrics_core import Metric
    from prometheus_client.samples import Sample

GOLDEN = Path(__file__).parent
RECORDINGS = GOLDEN.parent / "recordings"
HOSTS = sorted(
    place.name for place in RECORDINGS.iterdir() if place.is_dir() and not place.name.startswith("switch-")
)
COMPARED = {"moving": (0, 1, 8)}
"""The moments with a golden file, for hosts with very many: two in a row, and the one with the link down."""


class Shown(NamedTuple):
    """One moment of one host in every format."""

    golden: Path
    text: bytes
    text_1: bytes
    openmetrics: bytes


def moments_of(host: str) -> int:
    """The number of moments of a recording; 0: it has a single state."""
    return sum(place.name.isdecimal() for place in (RECORDINGS / host).iterdir())


def golden_files(host: str) -> dict[int, Path]:
    """The golden file of each compared moment."""
    if not (moments := moments_of(host)):
        return {0: GOLDEN / f"{host}.prom"}
    return {moment: GOLDEN / f"{host}.{moment}.prom" for moment in COMPARED.get(host, range(moments))}


ALL_GOLDEN = sorted(place for host in HOSTS for place in golden_files(host).values())


async def show(host: str) -> list[Shown]:
    exporter, observations = await observe(load_recording(str(RECORDINGS / host)), max(1, moments_of(host)))
    return [
        Shown(place, *(exporter.render(observations[moment], form) for form in Format))
        for moment, place in golden_files(host).items()
    ]


@pytest.mark.parametrize("host", HOSTS)
async def test_a_recorded_host_matches_its_golden_file(host: str, request: pytest.FixtureRequest) -> None:
    for shown in await show(host):
        if request.config.getoption("--rewrite-golden"):
            shown.golden.write_bytes(shown.text)
        assert shown.text.decode().splitlines() == shown.golden.read_text().splitlines()
        assert shown.text == shown.golden.read_bytes()


@pytest.mark.parametrize("host", HOSTS)
async def test_text_1_differs_from_text_0_in_the_header_only(host: str) -> None:
    for shown in await show(host):
        assert shown.text_1 == shown.text


@pytest.mark.parametrize("host", HOSTS)
async def test_openmetrics_holds_the_samples_of_the_text(host: str) -> None:
    """Literally the same numbers, and prometheus_client's own strict parser reads them."""
    for shown in await show(host):
        literal = samples(shown.text)
        assert samples(shown.openmetrics) == literal
        families = openmetrics.text_string_to_metric_families((shown.openmetrics + b"# EOF\n").decode())
        assert parsed(families) == numbers(literal)


@pytest.mark.parametrize("golden", ALL_GOLDEN, ids=lambda place: place.name)
def test_prometheus_client_reads_a_golden_file(golden: Path) -> None:
    text = golden.read_text()
    assert parsed(text_string_to_metric_families(text)) == numbers(samples(text.encode()))


@pytest.mark.parametrize("golden", ALL_GOLDEN, ids=lambda place: place.name)
def test_promtool_finds_nothing_in_a_golden_file(golden: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        if os.environ.get("CI") == "true":
            pytest.fail("promtool is not installed; CI needs it")
        pytest.skip("promtool is not installed (apt-get install prometheus)")
    with golden.open("rb") as content:
        result = subprocess.run(
            [promtool, "check", "metrics"], stdin=content, capture_output=True, text=True, check=False
        )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_every_golden_file_belongs_to_a_recording() -> None:
    assert sorted(GOLDEN.glob("*.prom")) == ALL_GOLDEN


@pytest.mark.parametrize("golden", ALL_GOLDEN, ids=lambda place: place.name)
def test_every_name_of_a_known_driver_is_a_row_or_left_out_on_purpose(golden: Path) -> None:
    shown = samples(golden.read_bytes())
    unmapped = {series for series in shown if "unmapped_names" in series and shown[series] != "0"}
    assert unmapped == (
        {'roce_exporter_unmapped_names{device="newnic_0"}'} if golden.stem == "unknown" else set()
    )


def test_every_recording_is_described() -> None:
    said = (RECORDINGS / "README.md").read_text()
    assert not [
        host for host in HOSTS if not re.search(rf"^\| .*`{re.escape(host)}`.* \|", said, re.MULTILINE)
    ]


async def test_the_counters_of_the_moving_host_never_go_back() -> None:
    """It is the first host that the README serves, and `rate()` of it must be realistic."""
    exporter, observations = await observe(load_recording(str(RECORDINGS / "moving")), moments_of("moving"))
    shown = [numbers(samples(exporter.render(one, Format.TEXT))) for one in observations]
    for before, after in pairwise(shown):
        back = [
            series for series, value in before.items() if "_total" in series and after.get(series, -1) < value
        ]
        assert not back
    up = [moment['roce_port_up{device="mlx5_1",port="1"}'] for moment in shown]
    assert up == [1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1]
    marks = [moment['roce_ecn_marked_packets_total{device="mlx5_0",port="1"}'] for moment in shown]
    assert marks[5] - marks[4] > 1_000_000, "the incast"


def numbers(literal: dict[str, str]) -> dict[str, float]:
    """Integers stay exact, whatever their length."""
    return {series: int(value) if value.isdecimal() else float(value) for series, value in literal.items()}


def parsed(families: Iterable[Metric]) -> dict[str, float]:
    """The samples of an independent parser, with labels in the notation of the exposition."""
    return {written(sample): sample.value for family in families for sample in family.samples}


def written(sample: Sample) -> str:
    labels = ",".join(f'{name}="{escaped(value)}"' for name, value in sample.labels.items())
    return f"{sample.name}{{{labels}}}" if labels else sample.name


def escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
