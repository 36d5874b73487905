"""TLS, client certificates and users with real clients: curl and openssl. Unauthorised clients are refused."""

import contextlib
import os
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from chaos_credentials import (
    PASSWORD,
    USER,
    Credentials,
    config_text,
    hashed,
    make_credentials,
    secured,
)
from chaos_daemon import Daemon, namespace
from servers import EXPORTER
from tools import need
from waiting import wait_until

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def credentials(tmp_path_factory) -> Credentials:
    return make_credentials(tmp_path_factory.mktemp("credentials"))


@pytest.fixture(scope="module")
def daemon(credentials) -> Iterator[Daemon]:
    """The daemon with TLS, one user, and client certificates of one name."""
    with secured(credentials, "all", config_text(clients=True, users=hashed(PASSWORD))) as running:
        yield running


class Curled(NamedTuple):
    """The result of curl: status 000 without a reply."""

    code: str
    error: str
    body: str


def curl(url: str, *flags: str) -> Curled:
    command = [need("curl"), "--silent", "--show-error", "--path-as-is", "--max-time", "60"]
    done = subprocess.run(
        [*command, "--write-out", "\n%{http_code}", *flags, url], capture_output=True, text=True, check=False
    )
    body, _, code = done.stdout.rpartition("\n")
    return Curled(code, done.stderr, body)


def shown(credentials: Credentials, client: str = "client", authority: str = "ca") -> tuple[str, ...]:
    """Curl's flags for a client's certificate, and for the trusted authority."""
    flags = ("--cacert", credentials.path(f"{authority}.pem"))
    if not client:
        return flags
    return (*flags, "--cert", credentials.path(f"{client}.pem"), "--key", credentials.path(f"{client}.key"))


LOGIN = ("--user", f"{USER}:{PASSWORD}")


@pytest.mark.parametrize(
    "login",
    [
        (),
        ("--user", f"{USER}:wrong"),
        ("--user", f"nobody:{PASSWORD}"),
        ("--user", f"{USER}:"),
        ("--user", f":{PASSWORD}"),
        ("--header", "Authorization: Bearer " + PASSWORD),
        ("--header", "Authorization: Basic !!!"),
    ],
)
@pytest.mark.parametrize("path", ["/metrics", "/", "/debug/snapshot", "/-/healthy", "/nowhere"])
def test_without_the_right_password_nothing_is_revealed(daemon, credentials, login, path) -> None:
    """Not even whether a path exists."""
    found = curl(f"https://{daemon.address}{path}", *shown(credentials), *login)
    assert found.code == "401"
    assert found.body == "user and password required\n"


@pytest.mark.parametrize(
    ("client", "reason"),
    [
        ("", "peer did not return a certificate"),
        ("expired-client", "certificate has expired"),
        ("strange-client", "unable to get local issuer certificate"),
    ],
)
def test_a_client_without_a_valid_certificate_gets_no_answer(daemon, credentials, client, reason) -> None:
    """The log has the reason; asyncio closes without an alert to the client (python/cpython issue 98078)."""
    found = curl(f"https://{daemon.address}/metrics", *shown(credentials, client), *LOGIN)
    assert found.code == "000"
    assert wait_until(lambda: reason in daemon.log)


def test_a_certificate_of_another_name_is_refused(daemon, credentials) -> None:
    found = curl(f"https://{daemon.address}/metrics", *shown(credentials, "other-client"), *LOGIN)
    assert found.code == "403"


def test_plain_http_gets_no_answer(daemon) -> None:
    assert curl(f"http://{daemon.address}/metrics", *LOGIN).code == "000"


@pytest.mark.parametrize("version", ["tls1", "tls1_1"])
def test_tls_before_1_2_is_refused_by_the_server(daemon, version) -> None:
    """The client offers the old version, with ciphers that allow it: the server is the one that refuses."""
    before = daemon.log.count("unsupported protocol")
    command = [need("openssl"), "s_client", "-connect", daemon.address, f"-{version}"]
    done = subprocess.run(
        [*command, "-cipher", "DEFAULT@SECLEVEL=0"],
        input="",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert wait_until(lambda: daemon.log.count("unsupported protocol") > before)


def test_a_client_detects_an_untrusted_server(daemon, credentials) -> None:
    strange = curl(f"https://{daemon.address}/metrics", *shown(credentials, authority="other-ca"), *LOGIN)
    assert strange.code == "000"
    with secured(credentials, "expired", config_text("expired-server")) as expired:
        found = curl(f"https://{expired.address}/metrics", *shown(credentials, ""))
    assert found.code == "000"
    assert "expired" in found.error


def test_no_secret_is_in_the_log_on_the_command_line_or_under_debug(daemon, credentials) -> None:
    """With the highest log level, after right and wrong logins, and after an invalid configuration."""
    url = f"https://{daemon.address}"
    for login in (LOGIN, ("--user", f"{USER}:{PASSWORD}x"), ("--user", f"{PASSWORD}:x")):
        curl(f"{url}/metrics", *shown(credentials), *login)
    curl(f"{url}/{PASSWORD}", *shown(credentials), *LOGIN)
    pages = [
        curl(f"{url}{path}", *shown(credentials), *LOGIN).body
        for path in ("/", "/metrics", "/debug/snapshot", "/debug/events", "/debug/owners")
    ]
    assert all(pages)
    with contextlib.ExitStack() as stack:
        key_text = (credentials.folder / "server.key").read_text().splitlines()[1]
        config = (credentials.folder / "all.yml").read_text()
        stack.callback((credentials.folder / "all.yml").write_text, config)
        (credentials.folder / "all.yml").write_text(f"basic_auth_users:\n  {USER}: {PASSWORD}\n")
        curl(f"{url}/metrics", *shown(credentials), *LOGIN)
        assert "is not a bcrypt hash" in wait_until(lambda: daemon.log)
    told = [*pages, daemon.log, " ".join(daemon.seen.cmdline())]
    secrets = [PASSWORD, b64encode(f"{USER}:{PASSWORD}".encode()).decode(), key_text, "$2b$"]
    assert not [secret for secret in secrets if any(secret in text for text in told)]


def test_a_key_that_others_must_not_read_is_never_written(credentials) -> None:
    """A key inside the web config file stays in memory: the exporter writes it to no file."""
    with secured(credentials, "inline", inline(credentials)) as daemon:
        assert curl(f"https://{daemon.address}/metrics", *shown(credentials, "")).code == "200"
        opened = [os.readlink(f"/proc/{daemon.process.pid}/fd/{name}") for name in descriptors(daemon)]
        assert not [place for place in opened if place.startswith("/memfd:")], (
            "not even there after it is read"
        )


def test_without_proc_a_key_has_to_be_in_a_file(credentials) -> None:
    place = credentials.folder / "without-proc.yml"
    place.write_text(inline(credentials))
    with namespace("mount") as inside:
        inside.run("mount", "-t", "tmpfs", "none", "/proc")
        command = [*inside.enter, *EXPORTER, "--host.simulate=quiet", f"--web.config.file={place}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "tls_server_config.key: needs /proc" in done.stderr


def inline(credentials: Credentials) -> str:
    texts = {
        name: (credentials.folder / f"server.{end}").read_text()
        for name, end in (("cert", "pem"), ("key", "key"))
    }
    return "tls_server_config:\n" + "".join(
        f"  {name}: |\n" + "".join(f"    {line}\n" for line in text.splitlines())
        for name, text in texts.items()
    )


def descriptors(daemon: Daemon) -> list[str]:
    return os.listdir(f"/proc/{daemon.process.pid}/fd")
