"""`--metrics.set` and `--metrics.exclude`: on the command line, in the configuration file, and in what a host serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from observed import observe, samples
from recorded import recording

from roce_exporter.catalog.row import FULL, LEAN, STANDARD
from roce_exporter.cli import main
from roce_exporter.cli.options import OptionError, parse_options
from roce_exporter.exposition import Format, Renderer
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.recording.recorded import load_recording

if TYPE_CHECKING:
    from pathlib import Path

    from roce_exporter.exporter import Observation

HOST = f"--host.recording={recording('mlx5-pair')}"
MTU = "roce_port_mtu_bytes"


def once(capsys: pytest.CaptureFixture[str], *flags: str) -> set[str]:
    assert main(["once", HOST, *flags]) == 0
    return set(samples(capsys.readouterr().out.encode()))


def test_the_default_is_standard(capsys: pytest.CaptureFixture[str]) -> None:
    default = once(capsys)
    assert default == once(capsys, "--metrics.set=standard")
    assert 'roce_exporter_metric_set_info{set="standard"}' in default
    assert len(once(capsys, "--metrics.set=lean")) < len(default) < len(once(capsys, "--metrics.set=full"))


def test_a_metric_is_left_out_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    whole = once(capsys, "--metrics.set=full")
    flags = (f"--metrics.exclude={MTU}", "--metrics.exclude=roce_dcqcn_parameter")
    left = once(capsys, "--metrics.set=full", *flags)
    gone = {series for series in whole if series.startswith((f"{MTU}{{", "roce_dcqcn_parameter{"))}
    assert gone
    assert whole - left == gone
    assert left <= whole


@pytest.mark.parametrize("name", ["roce_no_such_total", "roce_port_.*", "process_open_fds", ""])
def test_an_unknown_name_is_one_clear_error(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["once", HOST, f"--metrics.exclude={name}"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "--metrics.exclude" in line
    assert f"{name!r} is not a metric of this version" in line
    assert "docs/metrics.md" in line


def test_the_configuration_file_has_the_same_keys(tmp_path: Path) -> None:
    file = tmp_path / "config.yml"
    file.write_text(f"metrics.set: lean\nmetrics.exclude: [{MTU}, roce_link_up]\n")
    options = parse_options(["serve", f"--config.file={file}"])
    assert (options.metrics_set, options.metrics_exclude) == ("lean", [MTU, "roce_link_up"])
    assert parse_options(["once", f"--config.file={file}", "--metrics.set=full"]).metrics_set == "full"
    file.write_text("metrics.exclude: roce_no_such_total\n")
    with pytest.raises(OptionError, match=r"config\.yml:1.*roce_no_such_total"):
        parse_options(["serve", f"--config.file={file}"])


def series_of(observation: Observation, served: ServedSeries, form: Format = Format.TEXT) -> dict[str, str]:
    return samples(Renderer().render(served.select(observation.samples), form))


@pytest.mark.parametrize("metric_set", [LEAN, STANDARD])
async def test_a_device_that_comes_back_has_all_its_series_again(metric_set: str) -> None:
    """In between the host has another one; the sparse series that had begun are there again, also if they are 0 now."""
    (_, before), (_, between) = [
        await observe(load_recording(recording(host))) for host in ("mlx5-pair", "bnxt")
    ]
    served = ServedSeries(metric_set)
    shown = [set(series_of(one, served)) for one in (before[0], between[0])]
    assert not {series for series in shown[1] if "mlx5_" in series}
    zeros = [part._replace(values=(0,) * len(part.values)) for part in before[0].samples]
    again = set(samples(Renderer().render(served.select(zeros), Format.TEXT)))
    assert {series for series in shown[0] if "source_up" not in series} <= again


@pytest.mark.parametrize("metric_set", [LEAN, STANDARD, FULL])
async def test_two_scrapers_with_different_formats_get_the_same(metric_set: str) -> None:
    _, observations = await observe(load_recording(recording("moving")), 4)
    served = ServedSeries(metric_set)
    for one in observations:
        texts = [series_of(one, served, form) for form in (Format.TEXT, Format.OPENMETRICS, Format.TEXT)]
        assert texts[0] == texts[1] == texts[2]


async def test_the_moving_host_loses_no_series() -> None:
    """A link goes down in the eighth of twelve moments; nothing that was served goes away."""
    _, observations = await observe(load_recording(recording("moving")), 12)
    for metric_set in (LEAN, STANDARD):
        served, before = ServedSeries(metric_set), set[str]()
        whole = [set(series_of(one, ServedSeries(FULL))) for one in observations]
        for one, everything in zip(observations, whole, strict=True):
            shown = set(series_of(one, served))
            gone = {series for series in before - shown if series in everything}
            assert gone == set()
            before = shown


async def test_broken_sources_are_shown_with_their_device() -> None:
    _, (observation,) = await observe(load_recording(recording("sick")))
    whole, lean = (series_of(observation, ServedSeries(one)) for one in (FULL, LEAN))
    names = ("source_up", "read_errors_total", "unreadable_values", "quarantined_files")
    for name in (f"roce_exporter_{name}{{" for name in names):
        usual = "1" if "source_up" in name else "0"
        wrong = {key: value for key, value in whole.items() if key.startswith(name) and value != usual}
        assert wrong == {key: value for key, value in lean.items() if key.startswith(name) and value != usual}
    assert any(key.startswith("roce_exporter_read_errors_total{") for key in lean)
