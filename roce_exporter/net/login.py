"""Credentials of clients: the configuration of Prometheus' own clients, and secrets that are read from their files at each use.

The format is that of `promtool --http.config.file`
(https://prometheus.io/docs/prometheus/latest/configuration/promtool/); secrets are in files only.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import html
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, quote_plus

import aiofiles

from roce_exporter.net import NetError
from roce_exporter.net.tls import TlsFiles
from roce_exporter.yaml_document import (
    Entry,
    choice_of,
    mapping_of,
    parse_document,
    path_of,
    read_text,
    text_of,
)

SECRET_BYTES = 4096
HIDDEN = "***"
BASIC = "Basic"


class Credentials(NamedTuple):
    """A user and the file that holds the password; of another scheme the file that holds its credentials, such as a bearer token (RFC 6750)."""

    username: str
    file: Path
    scheme: str = BASIC


@dataclass(frozen=True, slots=True)
class Login:
    """Credentials as they are now."""

    username: str = ""
    password: str = ""
    """The password of basic authentication, or the credentials of another scheme."""
    scheme: str = BASIC

    def __repr__(self) -> str:
        """Without the password, so that no log and no traceback shows it."""
        return f"Login(username={self.username!r}, password=***)" if self.username else "Login()"


def read_http_config(path: str, flag: str) -> tuple[Credentials | None, TlsFiles]:
    """How a client authenticates and verifies the server, by the file that `flag` names.

    Raises:
        DocumentError: the file cannot be read, or a key or a value in it is invalid; the message names the line.
    """
    document = parse_document(Path(path), read_text(Path(path), flag))
    keys = mapping_of(document, ("basic_auth", "authorization", "tls_config"))
    tls = tls_files_of(keys.get("tls_config"))
    entry, basic = keys.get("authorization"), keys.get("basic_auth")
    if entry is None:
        return basic_auth_of(basic) if basic else None, tls
    if basic:
        basic.refuse("and authorization exclude each other; remove one")
    values = _required(entry, ("credentials_file",), ("type",))
    scheme = text_of(values["type"]) if "type" in values else "Bearer"
    if not scheme.isalnum() or not scheme.isascii() or scheme.lower() == "basic":
        values["type"].refuse(f"{scheme!r} is not supported; use Bearer, or basic_auth")
    return Credentials("", path_of(values["credentials_file"]), scheme), tls


def basic_auth_of(entry: Entry) -> Credentials:
    """The keys `username` and `password_file`. Raises DocumentError: one is missing, or the file cannot be read."""
    keys = _required(entry, ("username", "password_file"))
    return Credentials(text_of(keys["username"]), path_of(keys["password_file"]))


def _required(entry: Entry, needed: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Entry]:
    keys = mapping_of(entry, (*needed, *optional))
    for key in needed:
        if key not in keys:
            entry.refuse(f"has no {key}; add it")
    return keys


def tls_files_of(entry: Entry | None) -> TlsFiles:
    """The keys of `tls_config`. Raises DocumentError: a key or a value is invalid, or a file cannot be read."""
    keys = mapping_of(entry, tuple(one.name for one in fields(TlsFiles)))
    files = {key: path_of(keys[key]) for key in ("ca_file", "cert_file", "key_file") if key in keys}
    if entry and len(files.keys() & {"cert_file", "key_file"}) == 1:
        entry.refuse("needs cert_file and key_file together; add the other one")
    skip = keys.get("insecure_skip_verify")
    return TlsFiles(
        **files,
        server_name=text_of(keys["server_name"]) if "server_name" in keys else "",
        insecure_skip_verify=skip is not None and choice_of(skip, ("true", "false")) == "true",
    )


class LoginRefusedError(NetError):
    """The server has refused the credentials before."""


class LoginGate:
    """Lets one request with credentials go first, over all protocols of a server: each wrong password counts towards locking the user out."""

    def __init__(self) -> None:
        self.is_accepted = False
        self.refusal = ""
        """Why the server refused the credentials; empty while it did not."""
        self.rest = 0.0
        """Seconds for which the server wants no request (Retry-After); 0 without it."""
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def attempt(self, deadline: float) -> AsyncIterator[None]:
        """Send credentials within this block, and enter what comes of it.

        A first request that gets no answer costs the others a quarter of their time up to `deadline`, by the clock of the event loop.

        Raises:
            LoginRefusedError: the server has refused them.
        """
        held = False
        if not self.is_accepted:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout((deadline - asyncio.get_running_loop().time()) / 4):
                    held = await self._turn.acquire()
        try:
            if self.refusal:
                raise LoginRefusedError(self.refusal)
            yield
        finally:
            if held:
                self._turn.release()


SHORTEST_PAUSE, LONGEST_PAUSE = 300.0, 3600.0
"""Seconds for which refused credentials are not sent: switches lock a user out after three to five attempts within some minutes."""


@dataclass(slots=True)
class Refusals:
    """What a server has refused, between the rounds of requests to it. Times are by the clock of the caller."""

    refused: Login | None = None
    pause: float = 0.0
    until: float = 0.0
    """The credentials are not sent again before this time; the pause grows with each refusal."""
    rest_until: float = 0.0
    """When the server may be queried again, by its Retry-After."""

    def line(self, login: Login, now: float) -> str:
        """Why the server is not queried now with these credentials; empty if it is."""
        if now < self.rest_until:
            return f"the switch wants no requests for now (Retry-After); it is queried again in {self.rest_until - now:.0f} s"
        if not self.is_refused(login, now):
            return ""
        return (
            "the switch refused the user or the password: check basic_auth; it is tried again"
            f" in {self.until - now:.0f} s, and at once when the password file has changed"
        )

    def is_refused(self, login: Login, now: float) -> bool:
        """Whether these credentials are not sent now."""
        return self.refused == login and now < self.until

    def remember(self, login: Login, gate: LoginGate, now: float) -> None:
        """What came of a round with these credentials."""
        self.rest_until = now + gate.rest
        if not gate.refusal:
            self.refused, self.pause = None, 0.0
            return
        self.refused, self.pause = login, min(max(SHORTEST_PAUSE, 2 * self.pause), LONGEST_PAUSE)
        self.until = now + self.pause


async def read_login(auth: Credentials | None) -> Login:
    """The credentials as they are in the file now; trailing line ends are not part of a secret.

    Raises:
        NetError: the file cannot be read, is empty or too large, or holds more than one line of text.
    """
    if auth is None:
        return Login()
    is_basic = auth.scheme == BASIC
    place = f"{'password_file' if is_basic else 'credentials_file'} {auth.file}"
    try:
        async with aiofiles.open(auth.file, "rb") as file:
            content = await file.read(SECRET_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not a valid path"
        raise NetError(f"{place}: cannot be read: {reason}") from None
    try:
        secret = content.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        secret = ""
    usable = secret.isprintable() and (secret.isascii() or is_basic)
    if not secret or len(content) > SECRET_BYTES or not usable:
        raise NetError(f"{place}: is not a password; write it as one line of at most {SECRET_BYTES} bytes")
    return Login(auth.username, secret, auth.scheme)


def authorization(login: Login) -> tuple[tuple[str, str], ...]:
    """The header of basic authentication (RFC 7617) or of another scheme, if there are credentials."""
    if login.scheme != BASIC:
        return (("Authorization", f"{login.scheme} {login.password}"),)
    if not login.username:
        return ()
    token = base64.b64encode(f"{login.username}:{login.password}".encode()).decode("ascii")
    return (("Authorization", f"Basic {token}"),)


def hide(text: str, login: Login) -> str:
    """The text without the password in any form in which it may be sent, for pages and logs. Clients never put it there; this is the second line of defence."""
    if not login.password:
        return text
    pair, word = f"{login.username}:{login.password}".encode(), login.password.encode()
    forms = {
        base64.b64encode(pair).decode(),
        base64.b64encode(word).decode(),
        encode_basestring_ascii(login.password)[1:-1],
        quote(login.password, safe=""),
        quote_plus(login.password),
        html.escape(login.password),
        login.password,
    }
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    return text
