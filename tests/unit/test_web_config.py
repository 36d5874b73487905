"""The web config file: accepted and refused contents, error messages, and reloads."""

import asyncio
import errno
import logging
import ssl
import subprocess
import threading
from pathlib import Path

import pytest
import trustme
from tools import need
from waiting import HUNG_SECONDS

from roce_exporter.web import web_config_file
from roce_exporter.web.connection import RateLimit, WebConfig
from roce_exporter.web.web_config_file import WebConfigFile
from roce_exporter.yaml_document import DocumentError

HASH = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi"
OTHER_HASH = "$2b$04$" + "a" * 53
KEYS = "cert, cert_file, key, key_file"
TLS = "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n"
TLS13 = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
CLIENTS = "  client_ca_file: ca.pem\n  client_auth_type: RequireAndVerifyClientCert\n"


@pytest.fixture(autouse=True)
def patient(monkeypatch) -> None:
    """On a busy machine a read of a small file may take more than a second."""
    monkeypatch.setattr(web_config_file, "PATIENCE", 600)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def folder(tmp_path, authority) -> Path:
    issue(authority, tmp_path)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    trustme.CA().issue_cert("localhost").private_key_pem.write_to_path(str(tmp_path / "other-key.pem"))
    (tmp_path / "text.pem").write_text("no certificate\n")
    return tmp_path


def issue(authority: trustme.CA, folder: Path) -> None:
    certificate = authority.issue_cert("localhost")
    certificate.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
    certificate.private_key_pem.write_to_path(str(folder / "key.pem"))


def web_yml(folder: Path, text: str) -> Path:
    """Replace the file as configuration management does, so that its inode changes each time."""
    (folder / "new.yml").write_text(text)
    return (folder / "new.yml").replace(folder / "web.yml")


def now(file: WebConfigFile) -> WebConfig:
    """The configuration that a request gets now."""
    return asyncio.run(file.current())


def inline(path: Path) -> str:
    return "|\n" + "".join(f"    {line}\n" for line in path.read_text().splitlines())


def can_be_limited_to(curve: str) -> bool:
    """Whether the ssl of this Python can: that of Debian 12 accepts NIST's curves only."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ecdh_curve(curve)
    except ssl.SSLError:
        return False
    return True


ACCEPTED = {
    "empty": "",
    "comment": "# nothing yet\n",
    "null sections": "tls_server_config:\nbasic_auth_users:\nhttp_server_config:\n",
    "users": f"basic_auth_users:\n  alice: {HASH}\n  'bob:': {OTHER_HASH}\n",
    "certificate": TLS,
    "no client certificate": TLS + "  client_auth_type: NoClientCert\n",
    "optional client certificate": TLS
    + "  client_ca_file: ca.pem\n  client_auth_type: VerifyClientCertIfGiven\n",
    "client certificate": TLS + CLIENTS,
    "versions": TLS + "  min_version: TLS12\n  max_version: TLS12\n",
    "TLS 1.3 only": TLS + "  min_version: TLS13\n",
    "ciphers": TLS
    + "  cipher_suites:\n  - TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\n  - TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256\n",
    "ciphers of all versions": TLS
    + "  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA, TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384,"
    " TLS_CHACHA20_POLY1305_SHA256]\n",
    "client's cipher preference": TLS + "  prefer_server_cipher_suites: false\n",
    "curve": TLS + "  curve_preferences: [CurveP384]\n",
    **({"curve X25519": TLS + "  curve_preferences: [X25519]\n"} if can_be_limited_to("X25519") else {}),
    "headers": "http_server_config:\n  http2: false\n  headers:\n    X-Frame-Options: deny\n"
    "    X-Content-Type-Options: nosniff\n    Content-Security-Policy: default-src 'self'\n"
    "    Strict-Transport-Security: max-age=60\n    X-XSS-Protection: '0'\n",
    "http2": "http_server_config: {http2: true}\n",
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_good_file_is_accepted(folder, text) -> None:
    assert now(WebConfigFile(web_yml(folder, text)))


def test_promtool_accepts_the_same_files(folder) -> None:
    files = [folder / f"{number}.yml" for number, _ in enumerate(ACCEPTED)]
    for file, text in zip(files, ACCEPTED.values(), strict=True):
        file.write_text(text)
    command = [need("promtool"), "check", "web-config", *map(str, files)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr.count("SUCCESS")) == (0, len(files)), checked.stderr


REFUSED = {
    "tls_server_config: [\n": ":2: is not YAML: ",
    "a: \x01\n": ": is not YAML: ",
    "- a\n": ":1: the file: is not a mapping; write one `key: value` per line",
    "\ntls_config: {}\n": ":2: tls_config: is not a valid key; known here: tls_server_config, http_server_config,",
    f"{TLS}  certfile: a\n": f":4: tls_server_config.certfile: is not a valid key; known here: {KEYS}",
    '"a\\nb": 1\n': ":1: a b: is not a valid key",
    f"{TLS}  cert_file: b\n": ":4: tls_server_config.cert_file: is given twice; keep one",
    "? {a: b}\n: c\n": ":1: ?: is not a valid key",
    "basic_auth_users: a\n": ":1: basic_auth_users: is not a mapping",
    "tls_server_config:\n  key_file: key.pem\n": ":1: tls_server_config: missing cert_file; name the PEM file",
    "tls_server_config:\n  cert_file: cert.pem\n": ":1: tls_server_config: missing key_file; name the PEM file",
    "tls_server_config:\n  min_version: TLS12\n": ":1: tls_server_config: missing cert_file",
    "tls_server_config:\n  cert_file:\n": ":2: tls_server_config.cert_file: has no single value; give it one",
    "tls_server_config:\n  cert_file: [a]\n": ":2: tls_server_config.cert_file: has no single value",
    f"{TLS}  cert: text\n": ":4: tls_server_config.cert: is given in addition to cert_file; keep one of them",
    TLS.replace(
        "cert.pem", "none.pem"
    ): "none.pem cannot be read: No such file or directory; correct the path",
    TLS.replace(
        "cert.pem", "/dev/zero"
    ): ":2: tls_server_config.cert_file: /dev/zero is larger than 1 MiB; name a PEM",
    TLS.replace("key.pem", "/dev/zero"): "/dev/zero is larger than 1 MiB; name a PEM file",
    'basic_auth_users: {"\\ud800": a}\n': ":1: is not YAML: an escape for NUL or for half of a character",
    TLS.replace("cert.pem", '"a\\0b"'): ":2: is not YAML: an escape for NUL or for half of a character",
    "[" * 5000: ":1: is not YAML: it is nested more than 16 levels deep; correct it",
    TLS.replace("key.pem", "."): "cannot be read: Is a directory; correct the path or its permissions",
    TLS.replace(
        "cert.pem", "text.pem"
    ): ":2: tls_server_config.cert_file: contains no certificate; provide one",
    TLS.replace("key.pem", "text.pem"): ":3: tls_server_config.key_file: does not match the certificate",
    TLS.replace(
        "key.pem", "other-key.pem"
    ): "key_file: does not match the certificate (KEY_VALUES_MISMATCH); provide",
    "tls_server_config: {cert: no, key: no}\n": ":1: tls_server_config.cert: contains no certificate; provide one",
    TLS
    + CLIENTS.replace("ca.pem", "text.pem"): ":4: tls_server_config.client_ca_file: contains no certificate",
    f"{TLS}  client_ca_file: ca.pem\n": "has no effect by itself; set client_auth_type to RequireAndVerifyClientCert",
    f"{TLS}  client_auth_type: RequireAndVerifyClientCert\n": "client_auth_type: needs an authority to trust; name it",
    f"{TLS}  client_auth_type: Yes\n": "'Yes' is not supported; choose from NoClientCert, VerifyClientCertIfGiven,",
    f"{TLS}  client_auth_type: RequestClientCert\n": "ssl cannot request a certificate without verifying it; use Req",
    f"{TLS}  client_auth_type: RequireAnyClientCert\n": "ssl cannot request a certificate without verifying it",
    f"{TLS}  client_allowed_sans: [a]\n": "needs at least one name, and client_auth_type: RequireAndVerifyClientCert",
    f"{TLS}{CLIENTS}  client_allowed_sans: []\n": "client_allowed_sans: needs at least one name",
    f"{TLS}{CLIENTS}  client_allowed_sans: a\n": "is not a list; write `- value` per line",
    f"{TLS}  min_version: TLS10\n": ":4: tls_server_config.min_version: 'TLS10' is not supported; choose from TLS12,",
    f"{TLS}  min_version: TLS13\n  max_version: TLS12\n": "min_version: is above max_version; raise max_version",
    f"{TLS}  cipher_suites:\n  - TLS_RSA_WITH_RC4_128_SHA\n": ":5: tls_server_config.cipher_suites: 'TLS_RSA_WITH_RC4",
    f"{TLS}  min_version: TLS13\n  cipher_suites: [{TLS13[0]}]\n": "ssl cannot select individual suites of TLS 1.3",
    f"{TLS}  cipher_suites: [{', '.join(TLS13)}]\n": "leaves no suite for TLS 1.2; add one, or set min_version to TLS13",
    f"{TLS}  curve_preferences: [CurveP384, CurveP256]\n": "ssl can be limited to one curve only; list one",
    f"{TLS}  curve_preferences: [P1]\n": "'P1' is not supported; choose from CurveP256,",
    f"{TLS}  prefer_server_cipher_suites: 'true'\n": "prefer_server_cipher_suites: is neither true nor false; use one",
    "http_server_config: {http2: 2}\n": "http_server_config.http2: is neither true nor false",
    "http_server_config: {http2: !!bool maybe}\n": "http_server_config.http2: is neither true nor false",
    "http_server_config:\n  headers:\n    Server: x\n": ":3: http_server_config.headers.Server: is not a valid key",
    "http_server_config: {headers: {X-Frame-Options: DENY}}\n": "'DENY' is not supported; choose from deny, sameorigin",
    'http_server_config: {headers: {Content-Security-Policy: "a\\r\\nb: c"}}\n': "cannot be sent in a header; use print",
    "basic_auth_users:\n  alice: secret\n": ":2: basic_auth_users.alice: is not a bcrypt hash; make one with `htpas",
    "basic_auth_users:\n  alice:\n": ":2: basic_auth_users.alice: has no single value",
    f"basic_auth_users: {{a: {HASH.replace('$10$', '$99$')}}}\n": "is not a bcrypt hash",
    "rate_limit: {interval: 5, burst: 1}\n": "interval: is not a duration; write it with its unit, such as 500ms, 1s",
    f"rate_limit: {{interval: {'9' * 400}h, burst: 1}}\n": "rate_limit.interval: is not a duration",
    "rate_limit: {interval: 5s}\n": "rate_limit.interval: needs a burst of at least 1, otherwise every request",
    "rate_limit: {interval: 5s, burst: -1}\n": "rate_limit.burst: is not a whole number",
}


def test_a_curve_that_ssl_refuses_is_one_line(folder, monkeypatch) -> None:
    def refuse(_context: ssl.SSLContext, _curve: str) -> None:
        raise ssl.SSLError("unknown group")

    monkeypatch.setattr(ssl.SSLContext, "set_ecdh_curve", refuse, raising=False)
    with pytest.raises(
        DocumentError, match=r"web\.yml:4: .*this Python's ssl cannot be limited to this curve"
    ):
        WebConfigFile(web_yml(folder, TLS + "  curve_preferences: [X25519]\n"))


@pytest.mark.parametrize(("text", "expected"), REFUSED.items(), ids=range(len(REFUSED)))
def test_a_bad_file_is_refused_in_one_line_that_names_it(folder, text, expected) -> None:
    file = web_yml(folder, text)
    with pytest.raises(DocumentError) as caught:
        WebConfigFile(file)
    message = str(caught.value)
    assert expected in message
    assert message.startswith(str(file))
    assert len(message.splitlines()) == 1
    assert "secret" not in message


def test_a_missing_or_binary_file_is_refused(tmp_path) -> None:
    with pytest.raises(
        DocumentError, match=r"none\.yml: cannot be read: No such file .*; check --web.config.file"
    ):
        WebConfigFile(tmp_path / "none.yml")
    (tmp_path / "web.yml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(DocumentError, match=r"cannot be read: it is not UTF-8 text; check --web.config.file"):
        WebConfigFile(tmp_path / "web.yml")


def test_an_encrypted_key_is_refused_without_a_prompt_on_the_terminal(folder) -> None:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - comes with trustme

    key = serialization.load_pem_private_key((folder / "key.pem").read_bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"pass"),
    )
    (folder / "key.pem").write_bytes(encrypted)
    with pytest.raises(DocumentError, match="key_file: does not match the certificate"):
        WebConfigFile(web_yml(folder, TLS))


def test_inline_certificates_do_as_well_as_files(folder) -> None:
    text = (
        f"tls_server_config:\n  cert: {inline(folder / 'cert.pem')}  key: {inline(folder / 'key.pem')}"
        f"  client_ca: {inline(folder / 'ca.pem')}  client_auth_type: RequireAndVerifyClientCert\n"
        "  client_allowed_sans: [scraper.example, 2001:db8::1]\n"
    )
    config = now(WebConfigFile(web_yml(folder, text)))
    assert config.tls is not None
    assert config.tls.verify_mode is ssl.CERT_REQUIRED
    assert config.allowed_sans == {"scraper.example", "2001:db8::1"}


def test_tls_settings_reach_the_context(folder) -> None:
    text = (
        TLS + "  min_version: TLS12\n  max_version: TLS12\n  prefer_server_cipher_suites: false\n"
        "  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]\n"
    )
    tls = now(WebConfigFile(web_yml(folder, text))).tls
    assert tls is not None
    assert (tls.minimum_version, tls.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2)
    assert not tls.options & ssl.OP_CIPHER_SERVER_PREFERENCE
    offered = {cipher["name"] for cipher in tls.get_ciphers() if cipher["protocol"] != "TLSv1.3"}
    assert offered == {"ECDHE-ECDSA-AES256-GCM-SHA384"}
    newest = now(WebConfigFile(web_yml(folder, TLS + "  min_version: TLS13\n"))).tls
    assert newest is not None
    assert newest.minimum_version == ssl.TLSVersion.TLSv1_3


def test_openssl_supports_every_suite_of_the_table(folder) -> None:
    from roce_exporter.web.web_config_file import SUITES  # noqa: PLC0415 - only this test needs the table

    text = TLS + f"  cipher_suites: [{', '.join(SUITES)}]\n"
    tls = now(WebConfigFile(web_yml(folder, text))).tls
    assert tls is not None
    offered = {cipher["name"] for cipher in tls.get_ciphers() if cipher["protocol"] != "TLSv1.3"}
    assert offered == set(SUITES.values())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{interval: 500ms, burst: 3}", RateLimit(0.5, 3)),
        ("{interval: 1m30s, burst: 1}", RateLimit(90.0, 1)),
        ("{interval: 0, burst: 3}", None),
        ("{burst: 3}", None),
    ],
)
def test_rate_limits_are_read_as_go_durations(tmp_path, text, expected) -> None:
    config = now(WebConfigFile(web_yml(tmp_path, f"rate_limit: {text}\n")))
    assert config.rate_limit == expected


def test_an_invalid_change_keeps_the_previous_file_and_is_logged_once(folder, caplog) -> None:
    """One that is emptied or removed opens nothing."""
    file = WebConfigFile(web_yml(folder, f"basic_auth_users: {{alice: {HASH}}}\n"))
    before = now(file)
    for bad in ("basic_auth_users: {alice: secret}\n", "nonsense: 1\n", "", "\n", None):
        caplog.clear()
        if bad is None:
            (folder / "web.yml").unlink()
        else:
            web_yml(folder, bad)
        assert [now(file), now(file)] == [before, before]
        assert [record.levelno for record in caplog.records] == [logging.ERROR]
        assert "keeping the previous configuration" in caplog.text
    web_yml(folder, f"basic_auth_users: {{bob: {HASH}}}\n")
    assert set(now(file).users) == {b"bob"}


@pytest.mark.parametrize("name", ["web.yml", "key.pem"])
def test_what_could_not_be_read_for_a_moment_is_read_again_without_a_change(
    folder, caplog, monkeypatch, name
) -> None:
    """As after a shortage of descriptors. It is logged once."""
    file = WebConfigFile(web_yml(folder, f"basic_auth_users: {{alice: {HASH}}}\n{TLS}"))
    web_yml(folder, f"basic_auth_users: {{bob: {HASH}}}\n{TLS}")
    read = web_config_file.read_file

    def short(path: Path, limit: int) -> bytes | OSError | ValueError:
        return OSError(errno.EMFILE, "Too many open files") if path.name == name else read(path, limit)

    monkeypatch.setattr(web_config_file, "read_file", short)
    assert [set(now(file).users) for _ in range(3)] == [{b"alice"}] * 3
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    monkeypatch.undo()
    assert set(now(file).users) == {b"bob"}


def test_tls_is_neither_turned_on_nor_off_while_running(folder, caplog) -> None:
    secure = WebConfigFile(web_yml(folder, TLS))
    web_yml(folder, f"basic_auth_users: {{alice: {HASH}}}\n")
    assert now(secure).tls is not None
    assert "switching TLS on or off requires a restart" in caplog.text
    plain = WebConfigFile(folder / "web.yml")
    web_yml(folder, TLS)
    assert now(plain).tls is None


def test_rotated_certificates_are_picked_up_when_both_halves_are_there(folder, authority, caplog) -> None:
    file = WebConfigFile(web_yml(folder, TLS))
    before = now(file)
    renewed = authority.issue_cert("localhost")
    renewed.cert_chain_pems[0].write_to_path(str(folder / "fresh.pem"))
    (folder / "fresh.pem").replace(folder / "cert.pem")
    assert now(file) is before, "the key is still the old one"
    assert "KEY_VALUES_MISMATCH" in caplog.text
    renewed.private_key_pem.write_to_path(str(folder / "fresh.pem"))
    (folder / "fresh.pem").replace(folder / "key.pem")
    assert now(file) is not before


def test_a_file_that_does_not_exist_yet_is_read_when_it_appears(folder) -> None:
    file = WebConfigFile(web_yml(folder, TLS))
    before = now(file)
    web_yml(folder, TLS + CLIENTS.replace("ca.pem", "late.pem"))
    assert now(file) is before
    (folder / "ca.pem").rename(folder / "late.pem")
    tls = now(file).tls
    assert tls is not None
    assert tls.verify_mode is ssl.CERT_REQUIRED


class SlowReads:
    """Reads of files that begin and wait, as on NFS or FUSE whose server is gone, until `go_on` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str = "read_file") -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.paths: list[Path] = []
        self._read = getattr(web_config_file, name)
        monkeypatch.setattr(web_config_file, name, self)

    def __call__(self, path: Path, *limit: int) -> object:
        self.paths.append(path)
        content = self._read(path, *limit)
        self.begun.set()
        assert self.go_on.wait(HUNG_SECONDS)
        return content


async def test_requests_share_one_reload_and_none_of_them_blocks_the_event_loop(folder, monkeypatch) -> None:
    file = WebConfigFile(web_yml(folder, f"basic_auth_users: {{alice: {HASH}}}\n"))
    reads = SlowReads(monkeypatch)
    web_yml(folder, f"basic_auth_users: {{bob: {HASH}}}\n")
    requests = [asyncio.create_task(file.current()) for _ in range(5)]
    await asyncio.to_thread(reads.begun.wait)
    requests[0].cancel()
    reads.go_on.set()
    first, *rest = await asyncio.gather(*requests, return_exceptions=True)
    assert isinstance(first, asyncio.CancelledError)
    assert [set(config.users) for config in rest] == [{b"bob"}] * 4
    assert [path.name for path in reads.paths] == ["web.yml"]


async def test_a_change_during_a_reload_reaches_the_request_that_came_after_it(folder, monkeypatch) -> None:
    file = WebConfigFile(web_yml(folder, f"basic_auth_users: {{alice: {HASH}}}\n"))
    reads = SlowReads(monkeypatch)
    web_yml(folder, f"basic_auth_users: {{bob: {HASH}}}\n")
    before = asyncio.create_task(file.current())
    await asyncio.to_thread(reads.begun.wait)
    web_yml(folder, f"basic_auth_users: {{carol: {HASH}}}\n")
    after = asyncio.create_task(file.current())
    await asyncio.sleep(0)
    reads.go_on.set()
    await before
    assert set((await after).users) == {b"carol"}
    assert len(reads.paths) == 2


@pytest.mark.parametrize("hangs", ["read_file", "stamp"])
async def test_while_a_file_hangs_the_previous_configuration_serves(
    hangs, folder, monkeypatch, caplog
) -> None:
    """No request waits longer than PATIENCE, most of them not at all."""
    file = WebConfigFile(web_yml(folder, f"basic_auth_users: {{alice: {HASH}}}\n"))
    reads = SlowReads(monkeypatch, hangs)
    monkeypatch.setattr(web_config_file, "PATIENCE", 0.01)
    web_yml(folder, f"basic_auth_users: {{bob: {HASH}}}\n")
    assert [set((await file.current()).users) for _ in range(3)] == [{b"alice"}] * 3
    assert [record.message for record in caplog.records] == [
        f"{folder / 'web.yml'} or a file that it names cannot be read; keeping the previous configuration"
    ]
    reads.go_on.set()
    monkeypatch.setattr(web_config_file, "PATIENCE", 600)
    await file.current()  # the check that hung, or what came after it
    assert set((await file.current()).users) == {b"bob"}
