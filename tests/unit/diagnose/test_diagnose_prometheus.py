"""`check health --prometheus`: answers of a server on the loopback device, and everything that can be wrong with one."""

import json
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trustme
from http_answers import Answers, answering
from servers import kept_port

from roce_exporter.cli.entry import main

PASSWORD = "open-sesame"  # noqa: S105 - of a server that the test makes
AUTHORIZATION = "Basic b3A6b3Blbi1zZXNhbWU="
"""op:open-sesame."""


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


def data(found: Any) -> dict[str, Any]:
    return {"status": "success", "data": found}


def answer(
    url: str, series: list[dict[str, Any]] | None = None, instances: tuple[str, ...] = ("gpu-007",)
) -> tuple[int, object]:
    path = urlsplit(url).path
    if path.endswith("/label/instance/values"):
        return 200, data(instances)
    assert path.endswith("/api/v1/query_range"), path
    return 200, data({"resultType": "matrix", "result": port_down() if series is None else series})


def query(prometheus: Answers, number: int = 0) -> dict[str, list[str]]:
    return parse_qs(urlsplit(prometheus.requests[number].path).query)


@pytest.fixture
def prometheus() -> Iterator[Answers]:
    with answering(answer) as answers:
        yield answers


def refused(capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    """The one line of a run that could not be done."""
    assert main(["check", "health", *flags]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.endswith("\n")
    assert output.err.count("\n") == 1
    assert PASSWORD not in output.err
    return output.err.removeprefix("roce-exporter: ").strip()


def test_the_history_of_the_only_instance(prometheus, capsys) -> None:
    assert (
        main(["check", "health", f"--prometheus={prometheus.url}/base/", "--since=30m", "--format=json"]) == 1
    )
    document = json.loads(capsys.readouterr().out)
    found = [(one["device"], one["port"], one["side"], one["check"]) for one in document["findings"]]
    assert found == [("mlx5_0", "1", "link", "link_down")]
    assert "metrics of another version of the exporter: roce_future" in [
        one["what"] for one in document["not_checked"]
    ]
    assert [urlsplit(one.path).path for one in prometheus.requests] == [
        "/base/api/v1/label/instance/values",
        "/base/api/v1/query_range",
    ]
    assert query(prometheus)["match[]"] == ["roce_exporter_devices"]
    asked = query(prometheus, 1)
    assert asked["query"] == ['{__name__=~"roce_.+",instance="gpu-007"}']
    assert asked["step"] == ["15.000"]
    assert float(asked["end"][0]) - float(asked["start"][0]) == pytest.approx(1800)


def test_the_instance_is_quoted(prometheus, capsys) -> None:
    assert main(["check", "health", f"--prometheus={prometheus.url}", '--target=a"b\\']) == 1
    assert "Prometheus at http://127.0.0.1" in capsys.readouterr().out
    assert query(prometheus)["query"] == ['{__name__=~"roce_.+",instance="a\\"b\\\\"}']


def test_the_password_is_sent(prometheus, tmp_path) -> None:
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    (tmp_path / "http.yml").write_text("basic_auth: {username: op, password_file: password}")
    login = (f"--http.config.file={tmp_path / 'http.yml'}",)
    assert main(["check", "health", f"--prometheus={prometheus.url}", "--target=a", *login]) == 1
    assert prometheus.requests[0].headers["Authorization"] == AUTHORIZATION


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b"", "HTTP 401: it requires a user: give --http.config.file with basic_auth or authorization"),
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
def test_answers_that_are_no_history(prometheus, capsys, status, body, said) -> None:
    prometheus.reply = lambda _: (status, body)
    prometheus.headers["Location"] = "http://192.0.2.1/"
    url = prometheus.url
    assert refused(capsys, f"--prometheus={url}", "--target=a") == f"Prometheus at {url}: {said}"
    assert len(prometheus.requests) == 1


def test_no_series_lists_the_instances_that_there_are(prometheus, capsys) -> None:
    names = tuple(f"h{number}" for number in range(7))
    prometheus.reply = lambda path: answer(path, [], names)
    said = refused(capsys, f"--prometheus={prometheus.url}", "--target=a")
    assert said.endswith(
        "no series roce_* of instance 'a' in this time; instances are 'h0', 'h1', 'h2', 'h3', 'h4' and 2 more"
    )


@pytest.mark.parametrize(
    ("instances", "said"),
    [
        ((), "no series roce_* of any host in this time"),
        (("h1", "h2"), "give --target=INSTANCE, one of 'h1', 'h2'"),
    ],
)
def test_the_instance_must_be_given_unless_there_is_one(prometheus, capsys, instances, said) -> None:
    prometheus.reply = lambda path: answer(path, [], instances)
    assert refused(capsys, f"--prometheus={prometheus.url}").endswith(f": {said}")


def test_a_refused_connection(capsys) -> None:
    address = f"127.0.0.1:{kept_port()}"
    url = f"http://{address}"
    said = refused(capsys, f"--prometheus={url}")
    assert said.startswith(f"Prometheus at {url}: {address} refuses connections: check the port")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"http://op:{PASSWORD}@127.0.0.1", "has credentials in it; give --http.config.file"),
        ("127.0.0.1:9090", "must begin with http:// or https:// and a host"),
        ("ftp://127.0.0.1", "must begin with http:// or https:// and a host"),
        ("http://", "must begin with http:// or https:// and a host"),
        ("http://127.0.0.1:99999", "not a valid URL"),
        ("http://[::1", "not a valid URL"),
        ("http://127.0.0.1/?x=1", "has more than scheme, host, port and path"),
        ("http://127.0.0.1/a b", "has more than scheme, host, port and path"),
    ],
)
def test_other_urls_are_refused(capsys, url, said) -> None:
    assert refused(capsys, f"--prometheus={url}").startswith(f"--prometheus: {said}")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--target=a",), "--target: must begin with http://"),
        (("--http.config.file=x",), "--http.config.file needs --prometheus=URL or --target=URL"),
        (("--prometheus=http://a", "--http.config.file=/no/x"), "/no/x: cannot be read"),
        (
            ("--prometheus=http://a", "--host.simulate=quiet"),
            "--prometheus and --host.simulate name different",
        ),
        (("--prometheus=http://a", "--since=10s"), "--interval is 15 s: must be shorter than --since, 10 s"),
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
def test_flags_that_contradict_each_other(capsys, flags, said) -> None:
    assert refused(capsys, *flags).startswith(said)


def test_a_password_file_that_cannot_be_read(tmp_path, capsys) -> None:
    (tmp_path / "http.yml").write_text("basic_auth: {username: op, password_file: /nowhere}")
    said = refused(capsys, "--prometheus=http://127.0.0.1:1", f"--http.config.file={tmp_path / 'http.yml'}")
    assert "password_file: /nowhere cannot be read: No such file or directory" in said


def test_the_certificate_is_verified(tmp_path, capsys) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with answering(answer, context) as https:
        flags = (f"--prometheus={https.url}", "--target=a")
        said = refused(capsys, *flags)
        assert "the server's certificate is refused: " in said
        assert "set ca_file" in said
        assert https.requests == []
        for trust in ("ca_file: ca.pem", "insecure_skip_verify: true"):
            (tmp_path / "http.yml").write_text(f"tls_config: {{{trust}}}")
            assert main(["check", "health", *flags, f"--http.config.file={tmp_path / 'http.yml'}"]) == 1
        capsys.readouterr()
        # Flags of an earlier version.
        assert main(["check", "health", *flags, f"--prometheus.ca-file={tmp_path / 'ca.pem'}"]) == 1
        line = "roce-exporter: --prometheus.ca-file is deprecated; use --http.config.file\n"
        assert capsys.readouterr().err == line


def test_a_server_without_tls(prometheus, capsys) -> None:
    said = refused(capsys, prometheus.url.replace("http://", "--prometheus=https://"), "--target=a")
    assert "the port does not speak TLS" in said
