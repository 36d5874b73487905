"""The HTTPS client against a real server on loopback that behaves, and misbehaves, like the web server of a switch."""

import asyncio
import datetime as dt
import errno
import json
import logging
import os
import re
import socket
import ssl

import pytest
import trustme
from clock import pass_time
from https_switch import LOGIN, NAME, Says, https_switch, says, server_context
from waiting import HUNG_SECONDS

from roce_exporter.net import NetError
from roce_exporter.net.http import BODY_BYTES, HEAD_BYTES
from roce_exporter.net.json_reply import DEPTH, decode_json
from roce_exporter.net.login import Login
from roce_exporter.net.tls import TlsFiles, connection_fault, tls_fault
from roce_exporter.switches import json_client as https
from roce_exporter.switches.json_client import JsonClient, SessionCookie, StatusError, query_sources

SECRETS = ("hunter2", "aHVudGVy", "cmVhZGVy")
"""The password, and how base64 begins with it or with the user."""


@pytest.fixture(autouse=True)
def no_sessions():
    """Cookies and warnings are kept between visits, so each test begins without them."""
    https.JARS.clear()
    https.warn_once.cache_clear()


def descriptors() -> set[str]:
    return {fd for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")}


async def one(switch, path="/api/x", **options) -> object:
    async with JsonClient(switch.visit(**options)) as client:
        return await client.get("x", path)


async def fault_of(switch, path="/api/x", **options) -> str:
    with pytest.raises(NetError) as caught:
        await one(switch, path, **options)
    line = str(caught.value)
    assert "\n" not in line
    assert not any(secret in line for secret in SECRETS)
    return line


async def fault_for(reply: Says, folder, **options) -> str:
    async with https_switch(lambda asked: reply, folder) as switch:
        return await fault_of(switch, **options)


# Requests


async def test_a_request_is_json_without_compression_and_names_the_host_of_the_certificate(tmp_path) -> None:
    async with https_switch(lambda asked: says({}), tmp_path) as switch:
        await one(switch)
        headers = switch.asked[0].headers
        assert headers["host"] == f"{NAME}:{switch.port}"
        assert headers["accept"] == "application/json"
        assert headers["accept-encoding"] == "identity"
        assert headers["authorization"].startswith("Basic ")


async def test_without_a_user_no_credentials_are_sent(tmp_path) -> None:
    async with https_switch(lambda asked: says({}), tmp_path) as switch:
        await one(switch, login=Login())
        assert "authorization" not in switch.asked[0].headers


async def test_requests_at_the_same_time_use_no_more_connections_than_allowed(tmp_path) -> None:
    async with https_switch(lambda asked: says({}), tmp_path) as switch:
        async with JsonClient(switch.visit(), connections=2) as client:
            await asyncio.gather(*(client.get("x", f"/{number}") for number in range(12)))
        assert len(switch.asked) == 12
        assert switch.most_at_once <= 2


async def test_the_replies_of_a_round_are_bounded_and_keep_their_place_until_they_are_decoded(
    tmp_path, monkeypatch
) -> None:
    async def decoded(body: bytes, *_: object) -> object:
        assert client._slots.locked()
        return json.loads(body)

    monkeypatch.setattr(https, "read_json", decoded)
    monkeypatch.setattr(https, "ROUND_BYTES", 40)
    async with (
        https_switch(lambda asked: says({"a": 1}), tmp_path) as switch,
        JsonClient(switch.visit(), connections=1) as client,
    ):
        for number in range(5):
            assert await client.get("x", f"/{number}") == {"a": 1}
        with pytest.raises(NetError, match="GET /5: the replies of the round are larger than 0 MiB"):
            await client.get("x", "/5")


async def test_a_request_is_repeated_when_the_switch_had_closed_the_idle_connection(tmp_path) -> None:
    """A server announces nothing when it closes an idle connection: only the next request finds out."""
    async with https_switch(lambda asked: says({"at": asked.path}), tmp_path) as switch:
        async with JsonClient(switch.visit()) as client:
            await client.get("x", "/first")
            client._client._idle[0]._writer.transport.abort()
            assert await client.get("x", "/second") == {"at": "/second"}
        assert switch.connections == 2


async def test_plain_http_works_where_the_address_asks_for_it_and_warns_once(tmp_path, caplog) -> None:
    caplog.set_level(logging.WARNING)
    async with https_switch(lambda asked: says({"a": 1}), tmp_path, plain=True) as switch:
        assert await one(switch, scheme="http") == {"a": 1}
        assert await one(switch, scheme="http") == {"a": 1}
    assert [record.getMessage() for record in caplog.records] == [
        "target spine1: credentials are sent without encryption, because its address begins with http://"
    ]


# Reading only


async def test_a_document_is_posted_only_where_and_as_the_module_allows(tmp_path) -> None:
    async with https_switch(lambda asked: says(asked.document), tmp_path) as switch:
        async with JsonClient(switch.visit(), {"/ins": lambda document: document == {"show": 1}}) as client:
            assert await client.post("x", "/ins", {"show": 1}) == {"show": 1}
            for path, document in (("/ins", {"conf": 1}), ("/api", {"show": 1}), ("/ins?x", {"show": 1})):
                with pytest.raises(ValueError, match="does not allow"):
                    await client.post("x", path, document)
        assert [(asked.method, asked.path) for asked in switch.asked] == [("POST", "/ins")]


def test_the_client_has_no_other_methods() -> None:
    public = {name for name in vars(JsonClient) if not name.startswith("_")}
    assert public == {"get", "post"}


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: 1", "/ä", "no-slash", "/\x00", ""])
async def test_a_path_that_could_add_a_header_is_never_sent(tmp_path, path) -> None:
    async with https_switch(lambda asked: says({}), tmp_path) as switch:
        async with JsonClient(switch.visit()) as client:
            with pytest.raises(ValueError, match="quoted"):
                await client.get("x", path)
        assert switch.asked == []


# ProbeReply that cannot be used


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (204, " No Content instead of 200"),
        (301, ": redirects are not followed, give the address that the switch itself serves"),
        (302, ": redirects are not followed, give the address that the switch itself serves"),
        (400, " Bad Request: the switch does not understand the request"),
        (401, " Unauthorized: the switch refuses the user or the password: check basic_auth"),
        (403, " Forbidden: the user may not read this: check the role of the user"),
        (
            404,
            " Not Found: the switch does not have this path: check its version, and that its interface is enabled",
        ),
        (429, " Too Many Requests: the switch limits the rate of requests: query it less often"),
        (500, " Internal Server Error: the switch failed inside"),
        (503, " Service Unavailable: the switch is overloaded or starting"),
        (599, " instead of 200"),
    ],
)
async def test_a_status_is_one_clear_line_that_holds_nothing_of_the_reply(tmp_path, status, words) -> None:
    headers = (("Location", "https://elsewhere.example.com/hunter2"), ("X-Note", "hunter2"))
    body = b"" if status == 204 else b"hunter2"
    async with https_switch(lambda asked: Says(body, status, headers), tmp_path) as switch:
        line = await fault_of(switch)
        assert line == f"GET /api/x: status {status}{words}"
        assert [asked.path for asked in switch.asked] == ["/api/x"]


HTML = b"<!DOCTYPE html>\n<html><body><form>Log in</form></body></html>"


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        ("9" * 400, 3600),
        ("Fri, 31 Dec 2999 23:59:59 GMT", 3600),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 0),
        ("-5", 0),
        ("soon", 0),
    ],
)
async def test_a_busy_switch_gets_no_more_requests_in_this_round(tmp_path, header, seconds) -> None:
    busy = Says(b"", 503, (("Retry-After", header),))
    async with https_switch(lambda asked: busy, tmp_path) as switch:
        visit = switch.visit()
        async with JsonClient(visit) as client:
            left_alone = "not sent, because the switch asks to be left alone (Retry-After)"
            again = "status 503 Service Unavailable: the switch is overloaded or starting"
            for line in (again, left_alone if seconds else again):
                with pytest.raises(NetError, match=f"^GET /api/x: {re.escape(line)}$"):
                    await client.get("x", "/api/x")
        assert len(switch.asked) == (1 if seconds else 2)
        assert visit.gate.rest == seconds


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (HTML, "an HTML page instead of JSON, probably a login page"),
        (b"  <HTML>", "an HTML page"),
        (b"<?xml version='1.0'?><ins_api/>", "XML instead of JSON"),
        (b"", "empty"),
        (b'{"a": 1', "not valid JSON"),
        (b'{"a": NaN}', "NaN"),
        (b"[Infinity]", "NaN"),
        (b"[" + b"9" * 10_000 + b"]", "a number too long"),
        (b"[" * (DEPTH + 1) + b"]" * (DEPTH + 1), f"deeper than {DEPTH} levels"),
        (b'{"a":' * 100_000, "nested"),
        (b"hunter2", "not valid JSON"),
        (b"\xff\xfe\x00", "not valid JSON"),
    ],
)
async def test_a_body_that_is_not_json_is_one_clear_line(tmp_path, body, words) -> None:
    assert words in await fault_for(Says(body), tmp_path)


@pytest.mark.parametrize(
    ("body", "document"),
    [
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (b'{"name": "gpu\x01\n001"}', {"name": "gpu\x01\n001"}),
        (b'{"name": "gpu-\xe4"}', {"name": "gpu-\ufffd"}),
        (b'{"n": 18446744073709551616}', {"n": 2**64}),
        (b"[" * DEPTH + b"]" * DEPTH, json.loads("[" * DEPTH + "]" * DEPTH)),
    ],
)
def test_json_that_switches_print_is_accepted(body, document) -> None:
    """Names from LLDP can have any bytes: they must not cost the reply."""
    assert decode_json(body) == document


def whole(body: bytes, *headers: str) -> bytes:
    return "\r\n".join(("HTTP/1.1 200 OK", *headers, "", "")).encode() + body


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "closed the connection without a reply"),
        (b"HTTP/1.1 200", "cut off"),
        (whole(b'{"a"', "Content-Length: 100"), "cut off"),
        (whole(b"5\r\n{}", "Transfer-Encoding: chunked"), "cut off"),
        (whole(b"zz\r\n{}\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), "not valid HTTP"),
        (whole(b'{"a": 1', "Connection: close"), "not valid JSON"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "not valid HTTP"),
        (whole(b"", "X: " + "y" * HEAD_BYTES), "head of the reply is larger"),
        (
            b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(3000)),
            "head of the reply is larger",
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20, "too many interim"),
        (whole(b"{}", "Content-Length: 2", "Content-Encoding: gzip"), "compressed"),
        (whole(b"{}", "Content-Length: 2", "Content-Length: 3"), "not valid HTTP"),
        (whole(b" " * (BODY_BYTES + 1), f"Content-Length: {BODY_BYTES + 1}"), "larger than 6 MiB"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_reply_that_is_not_whole_is_one_clear_line(tmp_path, raw, words) -> None:
    assert words in await fault_for(Says(raw=raw), tmp_path)


@pytest.mark.parametrize(
    "reply",
    [
        Says(raw=b"", hang=True),
        Says(raw=whole(b'{"a"', "Content-Length: 100"), hang=True),
        Says(raw=whole(b"1\r\n \r\n", "Transfer-Encoding: chunked"), hang=True),
        Says(raw=b" ", trickle=True),
        Says(raw=b"H", trickle=True),
    ],
    ids=["silent", "half a body", "half a chunk", "drips", "drips a head"],
)
async def test_a_reply_that_never_ends_is_cut_at_the_deadline(tmp_path, reply) -> None:
    async with https_switch(lambda asked: reply, tmp_path) as switch:
        line = await fault_of(switch, seconds=0.3)
        assert "no complete reply within 0.3 s" in line or "not valid HTTP" in line
        await switch.quiet.wait()


# TLS


@pytest.mark.parametrize(
    ("plain", "options", "words"),
    [
        (False, {"tls": TlsFiles()}, ("certificate is refused", "set ca_file")),
        (False, {"server_name": "other.example.com"}, ("other.example.com", "server_name")),
        (True, {}, ("does not speak TLS",)),
    ],
)
async def test_a_server_that_cannot_be_trusted_gets_no_request(tmp_path, plain, options, words) -> None:
    async with https_switch(lambda asked: says({}), tmp_path, plain=plain) as switch:
        line = await fault_of(switch, **options)
    assert all(word in line for word in words)
    assert switch.asked == []


async def test_an_expired_certificate(tmp_path) -> None:
    past = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    folder = tmp_path / "expired"
    folder.mkdir()
    context, ca_file = server_context(folder, NAME, not_after=past, not_before=past - dt.timedelta(1))
    async with https_switch(lambda asked: says({}), tmp_path, context=context) as switch:
        line = await fault_of(switch, tls=TlsFiles(ca_file=ca_file))
        assert line.endswith(
            "certificate has expired; renew it, or correct the clock; it was valid until 2020-01-01"
        )


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (9, "correct the clock"),
        (10, "renew it"),
        (18, "set ca_file"),
        (20, "set ca_file"),
        (62, "set server_name"),
        (64, "set server_name"),
        (66, "2048 bits"),
        (68, "2048 bits"),
    ],
)
def test_each_fault_of_a_certificate_has_its_remedy(code, remedy) -> None:
    """The codes of OpenSSL. Switches often make themselves a certificate with a short key."""
    error = ssl.SSLCertVerificationError(1, "verify failed")
    error.verify_code, error.verify_message = code, "words of OpenSSL."
    assert tls_fault(error).startswith("the server's certificate is refused: words of OpenSSL; ")
    assert remedy in tls_fault(error)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_switch_that_requires_a_client_certificate(tmp_path, version) -> None:
    """In TLS 1.3 the refusal arrives only after the handshake."""
    context, ca_file = server_context(tmp_path)
    own = trustme.CA()
    own.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    context.maximum_version = version
    certificate = own.issue_cert("exporter.example.com")
    cert_file, key_file = tmp_path / "own.pem", tmp_path / "own.key"
    certificate.cert_chain_pems[0].write_to_path(str(cert_file))
    certificate.private_key_pem.write_to_path(str(key_file))
    async with https_switch(lambda asked: says({"a": 1}), tmp_path / "..", context=context) as switch:
        line = await fault_of(switch, tls=TlsFiles(ca_file=ca_file))
        assert "closed the connection" in line or "set cert_file" in line or "handshake failed" in line
        with_own = TlsFiles(ca_file=ca_file, cert_file=cert_file, key_file=key_file)
        assert await one(switch, tls=with_own) == {"a": 1}


async def test_tls_files_that_cannot_be_used_are_named(tmp_path) -> None:
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("no certificate")
    async with https_switch(lambda asked: says({}), tmp_path) as switch:
        missing = TlsFiles(ca_file=tmp_path / "missing.pem")
        assert "missing.pem cannot be read: No such file" in await fault_of(switch, tls=missing)
        assert "garbage.pem is not a PEM file" in await fault_of(switch, tls=TlsFiles(ca_file=garbage))
        absent = TlsFiles(ca_file=switch.ca_file, cert_file=tmp_path / "absent.pem")
        assert "cert_file or key_file cannot be read: No such file" in await fault_of(switch, tls=absent)
        own = TlsFiles(ca_file=switch.ca_file, cert_file=garbage, key_file=garbage)
        assert "garbage.pem and its key_file" in await fault_of(switch, tls=own)


async def test_a_replaced_authority_file_is_read_again(tmp_path) -> None:
    async with https_switch(lambda asked: says({"a": 1}), tmp_path) as switch:
        changing = tmp_path / "changing.pem"
        trustme.CA().cert_pem.write_to_path(str(changing))
        assert "refused" in await fault_of(switch, tls=TlsFiles(ca_file=changing))
        changing.write_bytes(switch.ca_file.read_bytes() + b"\n")
        assert await one(switch, tls=TlsFiles(ca_file=changing)) == {"a": 1}


# Connections


def test_any_other_failure_of_a_connection_has_the_words_of_the_system() -> None:
    unreachable = OSError(errno.EHOSTUNREACH, "x")
    assert connection_fault(unreachable, "192.0.2.1:443") == "192.0.2.1:443: No route to host"
    assert connection_fault(OSError(), "192.0.2.1:443") == "192.0.2.1:443: the connection failed"
    unresolved = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
    said = "leaf1:443: the name cannot be resolved: Temporary failure in name resolution"
    assert connection_fault(unresolved, "leaf1:443") == said


async def test_everything_is_closed_when_a_visit_is_cancelled(tmp_path) -> None:
    begun = asyncio.Event()

    def hang(asked):
        begun.set()
        return Says(raw=b"", hang=True)

    async with https_switch(hang, tmp_path) as switch:
        tasks, before = asyncio.all_tasks(), descriptors()
        visit = asyncio.create_task(one(switch))
        await begun.wait()
        visit.cancel()
        with pytest.raises(asyncio.CancelledError):
            await visit
        await switch.quiet.wait()
        await asyncio.sleep(0)
        assert descriptors() == before
        assert asyncio.all_tasks() == tasks


# Sessions

COOKIE = SessionCookie("nxapi_auth")


async def test_a_session_cookie_replaces_the_password_until_the_switch_refuses_it(tmp_path) -> None:
    valid = ["first"]

    def answer(asked):
        if asked.headers.get("cookie", "").removeprefix("nxapi_auth=") in valid:
            return says({"by": "cookie"})
        if "authorization" not in asked.headers:
            return Says(status=401)
        return says({"by": "password"}, headers=(("Set-Cookie", f"nxapi_auth={valid[0]}; HttpOnly; path=/"),))

    async def visit(switch) -> list[object]:
        async with JsonClient(switch.visit(), cookie=COOKIE) as client:
            return [(await client.get("x", "/a"))["by"] for _ in range(2)]

    async with https_switch(answer, tmp_path) as switch:
        assert await visit(switch) == ["password", "cookie"]
        assert await visit(switch) == ["cookie", "cookie"]
        valid[0] = "second"  # the first one has expired
        assert await visit(switch) == ["password", "cookie"]
        assert not [asked for asked in switch.asked if {"cookie", "authorization"} <= asked.headers.keys()]


async def test_a_cookie_is_for_one_login_one_address_and_one_target(tmp_path) -> None:
    def answer(asked):
        return says({}, headers=(("Set-Cookie", "nxapi_auth=abc"),))

    async with https_switch(answer, tmp_path) as switch:
        for options in ({}, {"login": Login("reader", "new")}, {"name": "other"}):
            async with JsonClient(switch.visit(**options), cookie=COOKIE) as client:
                await client.get("x", "/a")
        assert ["cookie" in asked.headers for asked in switch.asked] == [False, False, False]


def test_what_is_remembered_of_targets_is_limited(caplog, monkeypatch) -> None:
    """Service discovery can name any number of addresses."""
    monkeypatch.setattr(https, "MOST_TARGETS", 3)
    for number in range(10):
        https.kept_jar(f"t{number}", "c", ("192.0.2.1", 443, LOGIN)).value = "abc"
    assert [target for target, _ in https.JARS] == ["t7", "t8", "t9"]


@pytest.mark.parametrize("header", ["nxapi_auth=", "other=abc", "nxapi_auth=a b", "=", "nxapi_auth=ä"])
async def test_a_cookie_that_is_not_acceptable_is_ignored(tmp_path, header) -> None:
    def answer(asked):
        return says({}, headers=(("Set-Cookie", header.encode("latin-1")),))

    async with https_switch(answer, tmp_path) as switch:
        async with JsonClient(switch.visit(), cookie=COOKIE) as client:
            await client.get("x", "/a")
            await client.get("x", "/a")
        assert not [asked for asked in switch.asked if "cookie" in asked.headers]


DME = SessionCookie("APIC-cookie", "/api/aaaLogin.json", lambda login: {"pwd": login.password})


def dme(asked):
    if asked.path == "/api/aaaLogin.json":
        right = asked.method == "POST" and asked.document == {"pwd": LOGIN.password}
        return says({}, headers=(("Set-Cookie", "APIC-cookie=tok/en=="),)) if right else Says(status=401)
    return says({"ok": 1}) if asked.headers.get("cookie") == "APIC-cookie=tok/en==" else Says(status=403)


async def test_a_login_is_made_once_for_all_requests_and_renewed_when_it_has_expired(tmp_path) -> None:
    async with https_switch(dme, tmp_path) as switch:
        async with JsonClient(switch.visit(), cookie=DME) as client:
            await asyncio.gather(*(client.get("x", f"/{number}") for number in range(4)))
        assert [asked.path for asked in switch.asked].count("/api/aaaLogin.json") == 1
        https.JARS["spine1", "APIC-cookie"].value = "expired"
        async with JsonClient(switch.visit(), cookie=DME) as client:
            assert await client.get("x", "/a") == {"ok": 1}
        assert [asked.path for asked in switch.asked].count("/api/aaaLogin.json") == 2
        assert not [asked for asked in switch.asked if "authorization" in asked.headers]


@pytest.mark.parametrize("cookie", [COOKIE, DME])
async def test_a_wrong_password_is_sent_once_per_visit(tmp_path, cookie) -> None:
    """Each attempt counts towards locking the user out."""
    async with https_switch(lambda asked: Says(status=401), tmp_path) as switch:
        async with JsonClient(switch.visit(), cookie=cookie) as client:
            for number in range(4):
                with pytest.raises(StatusError, match="refuses the user or the password"):
                    await client.get("x", f"/{number}")
        assert len(switch.asked) == 1


@pytest.mark.parametrize(("status", "is_refusal"), [(401, True), (403, True), (404, False), (500, False)])
async def test_a_login_that_the_switch_does_not_have_refuses_no_password(
    tmp_path, status, is_refusal
) -> None:
    """NX-OS without its DME still answers on the command line; the password is sent to the DME once."""

    def answer(asked):
        return Says(status=status) if asked.path == "/api/aaaLogin.json" else says({"ok": 1})

    async with https_switch(answer, tmp_path) as switch:
        visit = switch.visit()
        async with JsonClient(visit, cookie=DME) as dme, JsonClient(visit, cookie=COOKIE) as cli:
            for _ in range(3):
                with pytest.raises(StatusError, match=f"status {status}|status 401"):
                    await dme.get("x", "/class")
            if not is_refusal:
                assert await cli.get("x", "/ins") == {"ok": 1}
        assert bool(visit.gate.refusal) is is_refusal
        assert [asked.path for asked in switch.asked].count("/api/aaaLogin.json") == 1


async def test_a_login_without_a_cookie_is_a_fault(tmp_path) -> None:
    async with (
        https_switch(lambda asked: says({}), tmp_path) as switch,
        JsonClient(switch.visit(), cookie=DME) as client,
    ):
        with pytest.raises(
            NetError, match=r"^GET /a: the login at /api/aaaLogin\.json returned no cookie APIC-cookie$"
        ):
            await client.get("x", "/a")


# The debug page and secrets


async def test_exchanges_are_kept_only_on_request_and_never_hold_a_secret(tmp_path, caplog) -> None:
    caplog.set_level(logging.DEBUG)

    def answer(asked):
        if asked.path == "/api/aaaLogin.json":
            return dme(asked)
        return Says(json.dumps({"echo": [*asked.headers.values(), LOGIN.password]}).encode())

    async with https_switch(answer, tmp_path) as switch:
        async with JsonClient(switch.visit(), cookie=DME) as client:
            await client.get("x", "/a")
        assert client.logged == []
        async with JsonClient(switch.visit(record=True), {"/ins": lambda document: True}, DME) as client:
            await client.get("x", "/a")
            await client.post("y", "/ins", {"show": "version"})
    assert [(entry.source, entry.query) for entry in client.logged] == [
        ("x", "GET /a"),
        ("y", 'POST /ins {"show": "version"}'),
    ]
    spoken = " ".join((*(entry.reply for entry in client.logged), caplog.text, repr(https.JARS)))
    assert "echo" in spoken
    assert not any(secret in spoken for secret in (*SECRETS, "tok/en"))


# Sources


async def test_sources_that_hang_do_not_stop_the_others(tmp_path) -> None:
    """The others wait a quarter of their time for the first one: it sends the password that may be wrong."""
    answered = []

    def answer(asked):
        if asked.path == "/hang1":
            pass_time(0.25 * HUNG_SECONDS)
        return Says(raw=b"", hang=True) if "hang" in asked.path else says({})

    async def get(name):
        reply = await client.get(name, f"/{name}")
        answered.append(name)
        if len(answered) == 3:
            pass_time(HUNG_SECONDS)
        return reply

    async with https_switch(answer, tmp_path) as switch, JsonClient(switch.visit()) as client:
        names = ("hang1", "good1", "hang2", "good2", "good3")
        replies = await query_sources({name: lambda name=name: get(name) for name in names})
    assert sorted(replies.replies) == ["good1", "good2", "good3"]
    assert sorted(replies.faults) == ["hang1", "hang2"]


async def test_a_defect_is_not_a_fault_and_ends_the_other_queries(tmp_path) -> None:
    def answer(asked):
        pass_time(0.25 * HUNG_SECONDS)
        return Says(raw=b"", hang=True)

    async with https_switch(answer, tmp_path) as switch:
        async with JsonClient(switch.visit()) as client:
            with pytest.raises(ExceptionGroup) as caught:
                await query_sources(
                    {
                        "slow": lambda: client.get("slow", "/slow"),
                        "bad": lambda: client.get("bad", "bad path"),
                    }
                )
        assert isinstance(caught.value.exceptions[0], ValueError)
        await switch.quiet.wait()
