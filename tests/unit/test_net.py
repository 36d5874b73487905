"""What the clients of the network have in common: deadlines of HTTP, and the file with credentials.

The HTTP client's treatment of replies is tested through the client of switches, in `switches/test_json_client.py`.
"""

import asyncio
import base64
import html
import json
import socket
from urllib.parse import quote, quote_plus

import pytest
from https_switch import Says, https_switch, says

from roce_exporter.net import NetError, http, meaning_of, meanings
from roce_exporter.net.http import HttpClient, HttpServer, place_text
from roce_exporter.net.json_reply import decode_json
from roce_exporter.net.login import Credentials, Login, authorization, hide, read_http_config, read_login
from roce_exporter.net.tls import TlsFiles
from roce_exporter.yaml_document import DocumentError


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n012345678", "the reply is larger than 0 MiB"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 5,
            "the reply comes in more than 4 pieces",
        ),
    ],
)
async def test_a_body_has_a_limit_of_bytes_and_of_pieces(tmp_path, monkeypatch, raw, line) -> None:
    monkeypatch.setattr(http, "MOST_PIECES", 4)
    async with https_switch(lambda _: Says(raw=raw, hang=True), tmp_path, plain=True) as switch:
        server = HttpServer(tls=False, host="127.0.0.1", port=switch.port)
        async with HttpClient(server, body_bytes=8) as client:
            with pytest.raises(NetError, match=f"^{line}$"):
                await client.request("GET", "/")
        await switch.quiet.wait()


async def test_a_handshake_has_a_limit() -> None:
    """The kernel accepts the connection, and no process answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = HttpServer(tls=True, host="127.0.0.1", port=silent.getsockname()[1])
        async with HttpClient(server, connect_seconds=0.05) as client:
            with pytest.raises(NetError, match="no connection in time"):
                await client.request("GET", "/")
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize(
    ("port", "host", "header"), [(80, "a", "a"), (8080, "a", "a:8080"), (80, "::1", "[::1]")]
)
async def test_the_header_host_names_a_port_that_is_not_the_default(tmp_path, port, host, header) -> None:
    async with https_switch(lambda _: says({}), tmp_path, plain=True) as switch:
        client = HttpClient(HttpServer(tls=False, host=host, port=port), address="127.0.0.1")

        async def connect() -> object:
            other = HttpClient(HttpServer(tls=False, host="127.0.0.1", port=switch.port))
            connection = await other._connected()
            client._open.add(connection)
            return connection

        client._connected = connect  # type: ignore[method-assign, assignment]
        async with client:
            await client.request("GET", "/")
        assert switch.asked[0].headers["host"] == header


def test_an_ipv6_address_is_in_brackets() -> None:
    assert place_text("fe80::1", 443) == "[fe80::1]:443"


CONFIGS = [
    ("", lambda folder: (None, TlsFiles())),
    (
        "basic_auth: {username: op, password_file: secret}",
        lambda folder: (Credentials("op", folder / "secret"), TlsFiles()),
    ),
    (
        "authorization: {credentials_file: secret}\ntls_config: {server_name: p, insecure_skip_verify: true}",
        lambda folder: (
            Credentials("", folder / "secret", "Bearer"),
            TlsFiles(server_name="p", insecure_skip_verify=True),
        ),
    ),
]


@pytest.mark.parametrize(("text", "expected"), CONFIGS)
def test_the_file_of_promtool(tmp_path, text, expected) -> None:
    (tmp_path / "secret").write_text("open-sesame\n")
    (tmp_path / "http.yml").write_text(text)
    config = read_http_config(str(tmp_path / "http.yml"), "--http.config.file")
    assert config == expected(tmp_path)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("basic_auth: {username: op}", "basic_auth: has no password_file; add it"),
        ("proxy_url: x", "proxy_url: is not a valid key"),
        ("authorization: {credentials_file: /nowhere}", "/nowhere cannot be read"),
        ("authorization: {type: Basic, credentials_file: secret}", "'Basic' is not supported; use Bearer"),
        ("authorization: {}\nbasic_auth: {}", "exclude each other"),
        ("tls_config: {cert_file: secret}", "needs cert_file and key_file together"),
    ],
)
def test_a_file_that_is_not_one_of_promtool(tmp_path, text, line) -> None:
    (tmp_path / "secret").write_text("open-sesame\n")
    (tmp_path / "http.yml").write_text(text)
    with pytest.raises(DocumentError, match=line):
        read_http_config(str(tmp_path / "http.yml"), "--http.config.file")


async def test_a_token_is_read_from_its_file_and_is_in_no_text(tmp_path) -> None:
    (tmp_path / "secret").write_text("open-sesame\n")
    login = await read_login(Credentials("", tmp_path / "secret", "Bearer"))
    assert authorization(login) == (("Authorization", "Bearer open-sesame"),)
    assert "sesame" not in repr(login)
    (tmp_path / "secret").write_text("sésame")
    with pytest.raises(NetError, match="is not a password"):
        await read_login(Credentials("", tmp_path / "secret", "Bearer"))


def test_no_form_of_a_password_is_shown() -> None:
    password = 'p&ss w/rd"\u00e9'  # noqa: S105 - of a test
    login = Login("ro", password)
    forms = (
        password,
        base64.b64encode(f"ro:{password}".encode()).decode(),
        base64.b64encode(password.encode()).decode(),
        json.dumps(password)[1:-1],
        quote(password, safe=""),
        quote_plus(password),
        html.escape(password),
    )
    text = hide(" | ".join(forms), login)
    assert not any(form in text for form in forms)
    assert hide("nothing to hide", Login()) == "nothing to hide"


def test_a_reply_of_very_many_values_is_refused_before_it_is_parsed() -> None:
    assert len(decode_json(b"[" + b"1," * 990 + b"1]", most=1000)) == 991
    for body in (b"[" + b"{}," * 600 + b"{}]", b"[" * 1001, b"{" + b'"a":1,' * 1001 + b'"a":1}'):
        with pytest.raises(NetError, match="the reply has more than 1,000 values"):
            decode_json(body, most=1000)


REASONS = """\
http: 401 refused, 403 forbidden, 404 unsupported, 429 busy, 500 unusable, 503 busy, 504 timeout
grpc: UNAUTHENTICATED refused, PERMISSION_DENIED forbidden, NOT_FOUND unsupported, UNIMPLEMENTED unsupported, DEADLINE_EXCEEDED timeout
redis: NOAUTH refused, WRONGPASS refused, NOPERM forbidden, LOADING busy, WRONGTYPE unusable
"""


def test_a_fault_has_a_reason_in_one_word() -> None:
    for table, _, cases in (line.partition(": ") for line in REASONS.splitlines()):
        for key, reason in (case.split() for case in cases.split(", ")):
            assert meaning_of("reasons", meanings(table)[key], "unusable") == reason, key
