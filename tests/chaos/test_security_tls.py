"""What real clients, curl and openssl, get without the right password or with an old TLS, and where no secret is."""

import contextlib
import os
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import bcrypt
import pytest
import trustme
from chaos_daemon import Daemon, exporter, namespace
from servers import EXPORTER
from tools import need
from waiting import wait_until

pytestmark = pytest.mark.ci


PASSWORD = "sesame-opens-4711"  # noqa: S105 - a test searches for it where it must not be
USER = "scraper"
COST = 6
FLAGS = ("--host.simulate=quiet", "--sampler.mode=off", "--log.level=debug")


def make_credentials(folder: Path) -> Path:
    """An authority and its certificates for the server and for a client: NAME.pem with the key NAME.key."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    for name, identity in (("server", "127.0.0.1"), ("client", "prometheus.example.org")):
        issued = authority.issue_cert(identity)
        issued.cert_chain_pems[0].write_to_path(folder / f"{name}.pem")
        issued.private_key_pem.write_to_path(folder / f"{name}.key")
    return folder


def config_text() -> str:
    """TLS, client certificates of one name, and one user."""
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(COST)).decode()
    return (
        "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n  client_ca_file: ca.pem\n"
        "  client_auth_type: RequireAndVerifyClientCert\n  client_allowed_sans: [prometheus.example.org]\n"
        f"basic_auth_users:\n  {USER}: {hashed}\n"
    )


@contextlib.contextmanager
def secured(credentials: Path, name: str, text: str) -> Iterator[Daemon]:
    """Start the daemon with a web config file in the folder of the credentials."""
    place = credentials / f"{name}.yml"
    place.write_text(text)
    folder = credentials / name
    folder.mkdir()
    with exporter(
        folder,
        *FLAGS,
        f"--web.config.file={place}",
        ready=lambda _: "ready: " in (folder / "exporter.log").read_text(),
    ) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def credentials(tmp_path_factory) -> Path:
    return make_credentials(tmp_path_factory.mktemp("credentials"))


@pytest.fixture(scope="module")
def daemon(credentials) -> Iterator[Daemon]:
    """The daemon with TLS, one user, and client certificates of one name."""
    with secured(credentials, "all", config_text()) as running:
        yield running


class Curled(NamedTuple):
    """The status and the body of a reply."""

    code: str
    body: str


def curl(url: str, *flags: str) -> Curled:
    command = [need("curl"), "--silent", "--show-error", "--path-as-is", "--max-time", "60"]
    done = subprocess.run(
        [*command, "--write-out", "\n%{http_code}", *flags, url], capture_output=True, text=True, check=False
    )
    body, _, code = done.stdout.rpartition("\n")
    return Curled(code, body)


def shown(credentials: Path) -> tuple[str, ...]:
    """Curl's flags for the client's certificate, and for the trusted authority."""
    names = {"--cacert": "ca.pem", "--cert": "client.pem", "--key": "client.key"}
    return tuple(word for flag, name in names.items() for word in (flag, str(credentials / name)))


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


@pytest.mark.parametrize("version", ["tls1", "tls1_1"])
def test_tls_before_1_2_is_refused_by_the_server(daemon, version) -> None:
    """The client offers the old version, with ciphers that allow it: the server is the one that refuses."""
    before = daemon.log.count("unsupported protocol")
    command = [need("openssl"), "s_client", "-connect", daemon.address, f"-{version}"]
    done = subprocess.run(
        [*command, "-cipher", "DEFAULT@SECLEVEL=0"], input="", capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert wait_until(lambda: daemon.log.count("unsupported protocol") > before)


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
        key_text = (credentials / "server.key").read_text().splitlines()[1]
        config = (credentials / "all.yml").read_text()
        stack.callback((credentials / "all.yml").write_text, config)
        (credentials / "all.yml").write_text(f"basic_auth_users:\n  {USER}: {PASSWORD}\n")
        curl(f"{url}/metrics", *shown(credentials), *LOGIN)
        assert "is not a bcrypt hash" in wait_until(lambda: daemon.log)
    told = [*pages, daemon.log, " ".join(daemon.seen.cmdline())]
    secrets = [PASSWORD, b64encode(f"{USER}:{PASSWORD}".encode()).decode(), key_text, "$2b$"]
    assert not [secret for secret in secrets if any(secret in text for text in told)]


def test_a_key_that_others_must_not_read_is_never_written(credentials) -> None:
    """A key inside the web config file stays in memory: the exporter writes it to no file."""
    with secured(credentials, "inline", inline(credentials)) as daemon:
        assert (
            curl(f"https://{daemon.address}/metrics", "--cacert", str(credentials / "ca.pem")).code == "200"
        )
        opened = [os.readlink(f"/proc/{daemon.process.pid}/fd/{name}") for name in descriptors(daemon)]
        assert not [place for place in opened if place.startswith("/memfd:")], (
            "not even there after it is read"
        )


def test_without_proc_a_key_has_to_be_in_a_file(credentials) -> None:
    place = credentials / "without-proc.yml"
    place.write_text(inline(credentials))
    with namespace("mount") as inside:
        inside.run("mount", "-t", "tmpfs", "none", "/proc")
        command = [*inside.enter, *EXPORTER, "--host.simulate=quiet", f"--web.config.file={place}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "tls_server_config.key: needs /proc" in done.stderr


def inline(credentials: Path) -> str:
    texts = {
        name: (credentials / f"server.{end}").read_text() for name, end in (("cert", "pem"), ("key", "key"))
    }
    return "tls_server_config:\n" + "".join(
        f"  {name}: |\n" + "".join(f"    {line}\n" for line in text.splitlines())
        for name, text in texts.items()
    )


def descriptors(daemon: Daemon) -> list[str]:
    return os.listdir(f"/proc/{daemon.process.pid}/fd")
