"""Authorities, certificates and users, and a daemon that uses them."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import bcrypt
import trustme
from chaos_daemon import Daemon, exporter

SIMULATED = ("--host.simulate=quiet", "--sampler.mode=off", "--log.level=debug")
PASSWORD = "sesame-opens-4711"  # noqa: S105 - a test searches for it where it must not be
USER = "scraper"
COST = 6
YESTERDAY = datetime.now(UTC) - timedelta(days=1)
LAST_YEAR = datetime.now(UTC) - timedelta(days=365)


def hashed(password: str, cost: int = COST) -> str:
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(cost)).decode()


@dataclass(frozen=True, slots=True)
class Credentials:
    """Files of two authorities, `ca` and `other`, and of the certificates they issued, NAME.pem with the key NAME.key."""

    folder: Path
    ca: trustme.CA
    other: trustme.CA

    def issue(self, name: str, authority: trustme.CA, identity: str, *, expired: bool = False) -> None:
        """Write NAME.pem and NAME.key."""
        span = {"not_before": LAST_YEAR, "not_after": YESTERDAY} if expired else {}
        leaf = authority.issue_cert(identity, **span)
        for place, pem in (
            (f"{name}.pem", b"".join(one.bytes() for one in leaf.cert_chain_pems)),
            (f"{name}.key", leaf.private_key_pem.bytes()),
        ):
            beside = self.folder / f"{place}.new"
            beside.write_bytes(pem)
            beside.replace(self.folder / place)

    def path(self, name: str) -> str:
        return str(self.folder / name)


def make_credentials(folder: Path) -> Credentials:
    """Create a server certificate, and client certificates: valid, expired, of another authority and of another name."""
    made = Credentials(folder, trustme.CA(), trustme.CA())
    made.ca.cert_pem.write_to_path(folder / "ca.pem")
    made.other.cert_pem.write_to_path(folder / "other-ca.pem")
    made.issue("server", made.ca, "127.0.0.1")
    made.issue("expired-server", made.ca, "127.0.0.1", expired=True)
    made.issue("client", made.ca, "prometheus.example.org")
    made.issue("expired-client", made.ca, "prometheus.example.org", expired=True)
    made.issue("strange-client", made.other, "prometheus.example.org")
    made.issue("other-client", made.ca, "somebody.example.org")
    return made


def config_text(certificate: str = "server", *, clients: bool = False, users: str = "") -> str:
    text = f"tls_server_config:\n  cert_file: {certificate}.pem\n  key_file: {certificate}.key\n"
    if clients:
        text += "  client_ca_file: ca.pem\n  client_auth_type: RequireAndVerifyClientCert\n"
        text += "  client_allowed_sans: [prometheus.example.org]\n"
    return text + (f"basic_auth_users:\n  {USER}: {users}\n" if users else "")


@contextlib.contextmanager
def secured(credentials: Credentials, name: str, text: str) -> Iterator[Daemon]:
    """Start the daemon with a web config file in the folder of the credentials."""
    place = credentials.folder / f"{name}.yml"
    place.write_text(text)
    folder = credentials.folder / name
    folder.mkdir()
    with exporter(
        folder,
        *SIMULATED,
        f"--web.config.file={place}",
        ready=lambda _: "ready: " in (folder / "exporter.log").read_text(),
    ) as daemon:
        yield daemon
