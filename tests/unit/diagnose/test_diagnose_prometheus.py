"""`diagnose --prometheus`: answers of a server on the loopback device, and everything that can be wrong with one."""

from __future__ import annotations

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trustme
from servers import closed_address

from roce_exporter.cli.entry import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PASSWORD = "open-sesame"  # noqa: S105 - of a server that the test makes
AUTHORIZATION = "Basic b3A6b3Blbi1zZXNhbWU="
"""op:open-sesame."""


class FakePrometheus:
    """Answers requests with what a test says, and keeps them."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.requests: list[tuple[str, dict[str, list[str]], str | None]] = []
        self.answer: Callable[[str], tuple[int, bytes]] = lambda path: (200, answer(path))
        fake = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                fake.requests.append((parts.path, parse_qs(parts.query), self.headers["Authorization"]))
                status, body = fake.answer(parts.path)
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "http://192.0.2.1/")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words: object) -> None:
                """Log nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.address = f"127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def port_down(instance: str = "gpu-007") -> list[dict[str, Any]]:
    """A port that went down, as Prometheus returns it."""
    target = {"instance": instance, "job": "roce"}
    port = {**target, "device": "mlx5_0", "port": "1"}
    return [
        {"metric": {**target, "__name__": "roce_exporter_devices"}, "values": [[100, "1"], [115, "1"]]},
        {"metric": {**target, "__name__": "roce_future"}, "values": [[100, "1"]]},
        {
            "metric": {**target, "__name__": "roce_device_info", "device": "mlx5_0"},
            "values": [[100, "1"], [115, "1"]],
        },
        {"metric": {**port, "__name__": "roce_port_up"}, "values": [[100, "1"], [115, "0"]]},
    ]


def data(found: Any) -> bytes:
    return json.dumps({"status": "success", "data": found}).encode()


def answer(
    path: str, series: list[dict[str, Any]] | None = None, instances: tuple[str, ...] = ("gpu-007",)
) -> bytes:
    if path.endswith("/label/instance/values"):
        return data(list(instances))
    assert path.endswith("/api/v1/query_range"), path
    return data({"resultType": "matrix", "result": port_down() if series is None else series})


@pytest.fixture
def prometheus() -> Iterator[FakePrometheus]:
    fake = FakePrometheus()
    yield fake
    fake.close()


def refused(capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    """The one line of a run that could not be done."""
    assert main(["diagnose", *flags]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.endswith("\n")
    assert output.err.count("\n") == 1
    assert PASSWORD not in output.err
    return output.err.removeprefix("roce-exporter: ").strip()


def test_the_history_of_the_only_instance(
    prometheus: FakePrometheus, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"http://{prometheus.address}/base/"
    assert main(["diagnose", f"--prometheus={url}", "--since=30m", "--format=json"]) == 1
    document = json.loads(capsys.readouterr().out)
    found = [(one["device"], one["port"], one["side"], one["cause"]) for one in document["findings"]]
    assert found == [("mlx5_0", "1", "link", "link_down")]
    assert "metrics of another version of the exporter: roce_future" in document["unseen"]
    (labels, names, _), (query_range, query, _) = prometheus.requests
    assert labels == "/base/api/v1/label/instance/values"
    assert names["match[]"] == ["roce_exporter_devices"]
    assert query_range == "/base/api/v1/query_range"
    assert query["query"] == ['{__name__=~"roce_.+",instance="gpu-007"}']
    assert query["step"] == ["15.000"]
    assert float(query["end"][0]) - float(query["start"][0]) == pytest.approx(1800)


def test_the_instance_is_quoted(prometheus: FakePrometheus, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", f"--prometheus=http://{prometheus.address}", '--instance=a"b\\']) == 1
    assert "Prometheus at http://127.0.0.1" in capsys.readouterr().out
    assert prometheus.requests[0][1]["query"] == ['{__name__=~"roce_.+",instance="a\\"b\\\\"}']


def test_a_long_time_has_longer_steps(prometheus: FakePrometheus) -> None:
    main(["diagnose", f"--prometheus=http://{prometheus.address}", "--instance=a", "--since=7d"])
    assert prometheus.requests[0][1]["step"] == [f"{7 * 86400 / 500:.3f}"]


def test_the_password_is_sent(prometheus: FakePrometheus, tmp_path: Path) -> None:
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    login = ("--prometheus.username=op", f"--prometheus.password-file={tmp_path / 'password'}")
    assert main(["diagnose", f"--prometheus=http://{prometheus.address}", "--instance=a", *login]) == 1
    assert prometheus.requests[0][2] == AUTHORIZATION


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b"", "HTTP 401: it requires a user: give --prometheus.username and --prometheus.password-file"),
        (403, b"secret page", "HTTP 403: this user may not query it"),
        (404, b"<html>", "HTTP 404: there is no API of Prometheus at this path; check the path of the URL"),
        (422, b'{"status":"error","error":"too\\n many samples"}', "HTTP 422: too many samples"),
        (400, b"[" * 100_000, "HTTP 400"),
        (503, b"\xff", "HTTP 503"),
        (302, b"", "it redirects to another place (HTTP 302), which is not followed; give the final URL"),
        (200, b"hello", "the reply is not that of Prometheus' API; check the port and the path"),
        (200, b"[]", "the reply is not that of Prometheus' API; check the port and the path"),
        (200, b'{"status":"error"}', "the reply is not that of Prometheus' API; check the port and the path"),
        (200, data({"resultType": "vector"}), "the answer is not a matrix"),
        (200, data({"resultType": "matrix", "result": [1]}), "the answer is not a valid matrix (TypeError)"),
    ],
)
def test_answers_that_are_no_history(
    prometheus: FakePrometheus, capsys: pytest.CaptureFixture[str], status: int, body: bytes, said: str
) -> None:
    prometheus.answer = lambda _: (status, body)
    url = f"http://{prometheus.address}"
    assert refused(capsys, f"--prometheus={url}", "--instance=a") == f"Prometheus at {url}: {said}"
    assert len(prometheus.requests) == 1


def test_no_series_lists_the_instances_that_there_are(
    prometheus: FakePrometheus, capsys: pytest.CaptureFixture[str]
) -> None:
    names = tuple(f"h{number}" for number in range(7))
    prometheus.answer = lambda path: (200, answer(path, [], names))
    said = refused(capsys, f"--prometheus=http://{prometheus.address}", "--instance=a")
    assert said.endswith(
        "no series roce_* of instance 'a' in this time; instances are 'h0', 'h1', 'h2', 'h3', 'h4' and 2 more"
    )


@pytest.mark.parametrize(
    ("instances", "said"),
    [((), "no series roce_* of any host in this time"), (("h1", "h2"), "give --instance: 'h1', 'h2'")],
)
def test_the_instance_must_be_given_unless_there_is_one(
    prometheus: FakePrometheus, capsys: pytest.CaptureFixture[str], instances: tuple[str, ...], said: str
) -> None:
    prometheus.answer = lambda path: (200, answer(path, [], instances))
    assert refused(capsys, f"--prometheus=http://{prometheus.address}").endswith(f": {said}")


def test_a_host_without_devices_is_not_diagnosed(
    prometheus: FakePrometheus, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = [{"metric": {"__name__": "roce_exporter_devices", "instance": "a"}, "values": [[1, "0"]]}]
    prometheus.answer = lambda path: (200, answer(path, nothing))
    said = refused(capsys, f"--prometheus=http://{prometheus.address}", "--instance=a")
    assert said.endswith("no RDMA device, so there is nothing to diagnose")


def test_a_refused_connection(capsys: pytest.CaptureFixture[str]) -> None:
    with closed_address() as address:
        url = f"http://{address}"
        said = refused(capsys, f"--prometheus={url}")
    assert said == (
        f"Prometheus at {url}: Connection refused; check the address, and whether Prometheus runs"
    )


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"http://op:{PASSWORD}@127.0.0.1", "has credentials in it; give --prometheus.username and"),
        ("127.0.0.1:9090", "must begin with http:// or https:// and a host"),
        ("ftp://127.0.0.1", "must begin with http:// or https:// and a host"),
        ("http://", "must begin with http:// or https:// and a host"),
        ("http://127.0.0.1:99999", "not a valid URL"),
        ("http://[::1", "not a valid URL"),
        ("http://127.0.0.1/?x=1", "has more than scheme, host, port and path"),
        ("http://127.0.0.1/a b", "has more than scheme, host, port and path"),
    ],
)
def test_other_urls_are_refused(capsys: pytest.CaptureFixture[str], url: str, said: str) -> None:
    assert refused(capsys, f"--prometheus={url}").startswith(f"--prometheus: {said}")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--instance=a",), "--instance needs --prometheus=URL"),
        (("--prometheus.ca-file=x",), "--prometheus.ca-file needs --prometheus=URL"),
        (
            ("--prometheus=http://a", "--host.simulate=quiet"),
            "--prometheus and --host.simulate name different",
        ),
        (
            ("--prometheus=http://a", "--prometheus.username=x"),
            "--prometheus.username and --prometheus.password",
        ),
        (
            ("--prometheus=http://a", "--prometheus.key-file=x"),
            "--prometheus.cert-file and --prometheus.key-fil",
        ),
        (("--prometheus=http://a", "--since=10s"), "--interval=15: must be shorter than --since"),
        (("--since=10s",), "--since needs a past"),
        (
            ("--host.recording=x", "--interval=10s"),
            "--interval: the moments of a recording have their own times",
        ),
        (("--since=1y",), "argument --since: '1y' is not a time"),
        (("--since=8d",), "argument --since: '8d' is not a time"),
        (("--since=0s",), "argument --since: '0s' is not a time"),
    ],
)
def test_flags_that_contradict_each_other(
    capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], said: str
) -> None:
    assert refused(capsys, *flags).startswith(said)


def test_a_password_file_that_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    login = ("--prometheus.username=op", "--prometheus.password-file=/nowhere")
    said = refused(capsys, "--prometheus=http://127.0.0.1:1", *login)
    assert said.endswith("password_file /nowhere: cannot be read: No such file or directory")


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def https(authority: trustme.CA) -> Iterator[FakePrometheus]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    fake = FakePrometheus(context)
    yield fake
    fake.close()


def test_the_certificate_is_verified(
    https: FakePrometheus, authority: trustme.CA, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"https://{https.address}"
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    said = refused(capsys, f"--prometheus={url}", "--instance=a")
    assert "its certificate is refused: " in said
    assert said.endswith("give --prometheus.ca-file")
    assert https.requests == []
    for trust in (f"--prometheus.ca-file={tmp_path / 'ca.pem'}", "--prometheus.insecure-skip-verify"):
        assert main(["diagnose", f"--prometheus={url}", "--instance=a", trust]) == 1


def test_a_server_without_tls(prometheus: FakePrometheus, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, f"--prometheus=https://{prometheus.address}", "--instance=a")
    assert "the TLS handshake failed" in said
