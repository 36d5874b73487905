"""`check --target`: what another host's exporter serves is judged as if it were read there."""

import json
import math
from collections.abc import Iterator

import pytest
from http_answers import Answers, answering
from prometheus_client.parser import text_string_to_metric_families

from roce_exporter.catalog.row import HISTOGRAM
from roce_exporter.cli.entry import main
from roce_exporter.view.remote import ROWS, parse_samples

HEAD = b"# TYPE roce_exporter_build_info gauge\nroce_exporter_build_info 1\n"


@pytest.fixture
def exporter() -> Iterator[Answers]:
    with answering(lambda path: (200, HEAD) if path == "/metrics" else (404, b"")) as answers:
        yield answers


def exposition(capsys: pytest.CaptureFixture[str], scenario: str) -> str:
    assert main(["once", f"--host.simulate={scenario}", "--metrics.set=full"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("scenario", ["misconfigured", "broken"])
def test_samples_are_those_of_another_parser(capsys, scenario) -> None:
    text = exposition(capsys, scenario)
    found, unknown = parse_samples(text, 5.0)
    expected: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            row = ROWS.get(sample.name)
            if row and row.kind != HISTOGRAM and math.isfinite(sample.value):
                labels = tuple(sample.labels.get(label, "") for label in row.labels)
                expected.setdefault(sample.name, {})[labels] = sample.value
    assert (found.time, found.values, unknown) == (5.0, expected, ())
    assert len(expected) > 100


def test_escapes_strange_names_and_values_that_are_no_numbers() -> None:
    text = (
        'roce_exporter_devices 1\nroce_port_up{device="a\\"\\\\\\n}",port="1"} 1\nroce_port_up{device="b",port="1"} NaN\n'
        'roce_port_up{device="c",port="1"} x\nroce_future 1\nroce_future_bucket{le="1"} 1\ngo_info 1\n'
    )
    found, unknown = parse_samples(text, 0.0)
    assert found.values == {"roce_exporter_devices": {(): 1.0}, "roce_port_up": {('a"\\\n}', "1"): 1.0}}
    assert unknown == ("roce_future",)
    assert parse_samples(f"roce_exporter_devices{{{'a' * (1 << 20)}}} 1\n", 0.0)[1] == ()


def test_a_counter_that_rises_between_two_scrapes(capsys, exporter) -> None:
    text = exposition(capsys, "quiet")
    name = 'roce_transport_retries_exceeded_total{device="mlx5_0",port="1"} '
    line = next(line for line in text.splitlines() if line.startswith(name))
    risen = text.replace(line, f"{name}{int(line.removeprefix(name)) + 40}")
    served = iter([text, risen, risen])
    exporter.reply = lambda _: (200, HEAD + next(served).encode())
    flags = [f"--target={exporter.url}", "--interval=0.01", "--format=json"]
    assert main(["check", "health", *flags]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["source"].startswith(f"Exporter at {exporter.url}: 2 samples")
    assert {one["device"] for one in document["findings"] if one["status"] != "ok"} == {"mlx5_0"}
    assert [one.path for one in exporter.requests] == ["/metrics", "/metrics"]
    # Settings alone need one scrape; they are the results that the exporter serves.
    main(["check", "settings", *flags])
    document = json.loads(capsys.readouterr().out)
    assert {one["topic"] for one in document["findings"]} == {"settings"}
    assert len(exporter.requests) == 3


@pytest.mark.parametrize(
    ("flags", "reply", "said"),
    [
        ([], (200, b"go_info 1\n"), "the exporter at URL: another program responds there"),
        ([], (401, b""), "the exporter at URL: HTTP 401: it requires a user: give --http.config.file"),
        ([], (404, b""), "the exporter at URL: HTTP 404: check the port and path of the URL"),
        ([], (500, b""), "the exporter at URL: HTTP 500\n"),
        (
            [],
            (503, b""),
            "the exporter at URL: HTTP 503: it has not finished its first collection, or is busy",
        ),
        (["--since=10m"], (200, HEAD), "--since needs a past"),
        (["--host.simulate=quiet"], (200, HEAD), "--target and --host.simulate name different hosts"),
    ],
)
def test_what_cannot_be_checked_is_one_line(capsys, exporter, flags, reply, said) -> None:
    exporter.reply = lambda _: reply
    assert main(["check", f"--target={exporter.url}", *flags]) == 2
    output = capsys.readouterr()
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert said.replace("at URL", f"at {exporter.url}") in output.err


def test_a_setting_of_another_host_has_a_next_step(capsys, exporter) -> None:
    wrong = 'roce_config_check_ok{device="mlx5_0",port="1",netdev="eth0",check="trust"} 0\n'
    exporter.reply = lambda _: (200, HEAD + wrong.encode())
    assert main(["check", "settings", f"--target={exporter.url}"]) == 1
    assert "fix       roce-exporter check settings, on the host" in capsys.readouterr().out


def test_an_empty_token_is_one_line(capsys, exporter, tmp_path) -> None:
    (tmp_path / "token").write_text("")
    (tmp_path / "http.yml").write_text("authorization: {credentials_file: token}")
    login = f"--http.config.file={tmp_path / 'http.yml'}"
    assert main(["check", f"--target={exporter.url}", login]) == 2
    assert f"the exporter at {exporter.url}: credentials_file" in capsys.readouterr().err


def test_a_url_with_a_path_and_a_user(capsys, exporter, tmp_path) -> None:
    (tmp_path / "token").write_text("open-sesame")
    (tmp_path / "http.yml").write_text("authorization: {credentials_file: token}")
    exporter.reply = lambda path: (200, HEAD) if path == "/federate/roce" else (404, b"")
    login = f"--http.config.file={tmp_path / 'http.yml'}"
    assert main(["check", "settings", f"--target={exporter.url}/federate/roce", login]) == 3
    assert exporter.requests[0].headers["Authorization"] == "Bearer open-sesame"
    assert "the exporter serves no results of checks" in " ".join(capsys.readouterr().out.split())
