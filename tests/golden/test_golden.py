"""Every recorded host through the whole pipeline: byte for byte, and read by independent parsers.

Golden files have series alone: the catalogue has HELP and TYPE, with which both parsers' are compared. That of a
recording with a base has the lines that differ from the base's. `pytest --rewrite-golden` rewrites the files; read the diff.
"""

import asyncio
import re
import subprocess
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from observed import observe, samples
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from recorded import HOSTS, RECORDINGS, recording
from tools import need

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import FULL, LEAN, STANDARD, MetricSet
from roce_exporter.exposition import Format, Renderer
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.host.recorded.recorded import load_recording

GOLDEN = Path(__file__).parent
COMPARED = {"moving": (0, 1, 8)}
"""The moments with a golden file, for hosts with very many: two in a row, and the one with the link down."""
IN_EVERY_SET = ("mlx5-pair", "mlx5-lag", "bnxt", "ionic", "irdma", "sick")
"""Two ports with PFC, a LAG, one host per large vendor, and one with broken sources."""
CASES = [
    *((host, FULL) for host in HOSTS),
    *((host, smaller) for smaller in (LEAN, STANDARD) for host in IN_EVERY_SET),
]
ROWS = {row.name.removesuffix("_total"): row for row in CATALOG}
Shown = dict[Format, bytes]
"""One moment of a host."""


@cache
def show(host: str, metric_set: MetricSet = FULL) -> list[Shown]:
    """Every moment of a recorded host."""
    kernel = load_recording(recording(host))
    exporter, observations = asyncio.run(observe(kernel, len(kernel.moments)))
    if metric_set is FULL:
        return [{form: exporter.render(one, form) for form in Format} for one in observations]
    selected = [ServedSeries(metric_set).select(one.samples) for one in observations]
    return [{form: Renderer().render(one, form) for form in Format} for one in selected]


def compared(host: str, metric_set: MetricSet = FULL) -> dict[Path, Shown]:
    """The moments with a golden file."""
    moments = show(host, metric_set)
    folder = GOLDEN if metric_set is FULL else GOLDEN / metric_set
    if len(moments) == 1:
        return {folder / f"{host}.prom": moments[0]}
    return {
        folder / f"{host}.{moment}.prom": moments[moment]
        for moment in COMPARED.get(host, range(len(moments)))
    }


@pytest.mark.parametrize(("host", "metric_set"), CASES)
def test_a_recorded_host_matches_its_golden_file(host, metric_set, request) -> None:
    for golden, shown in compared(host, metric_set).items():
        kept = kept_of(host, shown)
        if request.config.getoption("--rewrite-golden"):
            golden.parent.mkdir(exist_ok=True)
            golden.write_text(kept)
        assert kept.splitlines() == golden.read_text().splitlines()
        assert kept == golden.read_text()
        assert_parsers_read(shown)


def kept_of(host: str, shown: Shown) -> str:
    """What the golden file has of an exposition."""
    own = re.findall(r"^[^#].*\n", shown[Format.TEXT].decode(), re.MULTILINE)
    named = re.match(r"recording 1\nbase (\S+)\n", Path(recording(host)).read_text())
    if not named:
        return "".join(own)
    common = re.findall(r"^[^#].*\n", show(named[1])[0][Format.TEXT].decode(), re.MULTILINE)
    gone = (f"-{line}" for line in common if line not in own)
    return "".join((f"# base {named[1]}\n", *gone, *(f"+{line}" for line in own if line not in common)))


def assert_parsers_read(shown: Shown) -> None:
    """Literally the same numbers in every format, with the catalogue's texts."""
    literal = samples(shown[Format.TEXT])
    assert shown[Format.TEXT_1] == shown[Format.TEXT], "they differ in the HTTP header only"
    assert samples(shown[Format.OPENMETRICS]) == literal
    text, strict = shown[Format.TEXT].decode(), (shown[Format.OPENMETRICS] + b"# EOF\n").decode()
    for families in (
        text_string_to_metric_families(text),
        openmetrics.text_string_to_metric_families(strict),
    ):
        read = list(families)
        assert parsed(read) == numbers(literal)
        told = {family.name: (family.type, family.documentation) for family in read}
        assert told == {name: (ROWS[name].kind, ROWS[name].help) for name in told}


def test_promtool_finds_nothing_in_all_expositions_together() -> None:
    families: dict[str, dict[str, str]] = {}
    for host, metric_set in CASES:
        for shown in compared(host, metric_set).values():
            for family in re.split(r"^(?=# HELP )", shown[Format.TEXT].decode(), flags=re.MULTILINE)[1:]:
                head, lines = re.findall(r"^#.*\n", family, re.MULTILINE), samples(family.encode())
                families.setdefault("".join(head), {}).update(lines)
    assert len(families) > 300
    text = "".join(
        head + "".join(f"{series} {value}\n" for series, value in found.items())
        for head, found in families.items()
    )
    command = [need("promtool"), "check", "metrics"]
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_every_golden_file_belongs_to_a_recording() -> None:
    assert set(GOLDEN.rglob("*.prom")) == {place for case in CASES for place in compared(*case)}


@pytest.mark.parametrize("host", HOSTS)
def test_every_name_of_a_known_driver_is_a_row_or_left_out_on_purpose(host) -> None:
    for shown in compared(host).values():
        found = samples(shown[Format.TEXT])
        unmapped = {series for series in found if "unmapped_names" in series and found[series] != "0"}
        assert unmapped == (
            {'roce_exporter_unmapped_names{device="newnic_0"}'} if host == "unknown" else set()
        )


def test_every_recording_is_described() -> None:
    said = (RECORDINGS / "README.md").read_text()
    assert [
        one for one in HOSTS if not re.search(rf"^\| .*`{re.escape(one)}`.* \|", said, re.MULTILINE)
    ] == []


@pytest.mark.parametrize("host", IN_EVERY_SET)
def test_every_value_is_that_of_the_next_set(host) -> None:
    """Only what stands for all devices is not in the larger set."""
    lean, standard, whole = (samples(show(host, one)[0][Format.TEXT]) for one in (LEAN, STANDARD, FULL))
    for smaller, larger in ((lean, standard), (standard, whole)):
        more = {series: value for series, value in smaller.items() if larger.get(series) != value}
        assert all("_metric_set_info" in series or "device=" not in series for series in more), more
    assert len(lean) < len(standard) < len(whole)


def test_the_counters_of_the_moving_host_never_go_back() -> None:
    """It is the first host that the README serves, and `rate()` of it must be realistic."""
    shown = [numbers(samples(one[Format.TEXT])) for one in show("moving")]
    for before, after in pairwise(shown):
        counters = {series: value for series, value in before.items() if "_total" in series}
        assert [series for series, value in counters.items() if after.get(series, -1) < value] == []
    up = [moment['roce_port_up{device="mlx5_1",port="1"}'] for moment in shown]
    assert up == [1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1]
    marks = [moment['roce_ecn_marked_packets_total{device="mlx5_0",port="1"}'] for moment in shown]
    assert marks[5] - marks[4] > 1_000_000, "the incast"


class Pair(NamedTuple):
    """One host under two drivers or kernels: the metrics that only the first has, and those that only the second has."""

    first: str
    second: str
    gone: set[str]
    new: set[str]


PACING = {f"roce_doorbell_pacing_{what}_total" for what in ("alerts", "completions", "reschedules")}
UNICAST, DATA, BYTES = (
    {f"roce_port_{way}_{what}_total" for way in ("receive", "transmit") for what in kinds}
    for kinds in (("unicast_packets",), ("data_bytes", "data_packets"), ("bytes",))
)
PAIRS = (
    Pair("drift-bnxt-6.12", "drift-bnxt-7.3", gone=PACING, new=UNICAST),
    Pair("drift-bnxt-7.3", "drift-bnxt-own", gone=UNICAST | DATA, new=PACING),
    Pair("drift-irdma-6.12", "drift-irdma-7.3", gone=set(), new=set()),
    Pair("drift-rxe-6.12", "drift-rxe-7.3", gone=set(), new=BYTES),
)
"""Recordings of one machine with the same counts; only the names of the kernel or of the driver differ."""


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.second)
def test_another_kernel_yields_the_same_series_with_the_same_values(pair) -> None:
    first, second = (
        {
            series: value
            for series, value in samples(show(host)[0][Format.TEXT]).items()
            if not series.startswith("roce_exporter_")
        }
        for host in (pair.first, pair.second)
    )
    both = first.keys() & second.keys()
    assert {series.partition("{")[0] for series in first.keys() - both} == pair.gone
    assert {series.partition("{")[0] for series in second.keys() - both} == pair.new
    assert len(both) > 12
    assert {series: first[series] for series in both} == {series: second[series] for series in both}


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
