"""The web config file: TLS, users, extra headers and rate limit, in the format of Prometheus' exporter-toolkit.

Follows https://prometheus.io/docs/prometheus/latest/configuration/https/, but is stricter: a file that both
`promtool check web-config` and this module accept means the same, and options that Python's `ssl` does not support are
errors instead of being ignored. `http2: true` (the format's default) is accepted, but only HTTP/1.1 is served.

The file is read again, in a thread, when it or a file that it names changes. TLS is turned on or off at the start only.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from roce_exporter.collect.workers import CallThread, run_in_thread
from roce_exporter.net.tls import stamp
from roce_exporter.web.connection import RateLimit, WebConfig
from roce_exporter.words import seconds_of
from roce_exporter.yaml_document import (
    MAX_BYTES,
    DocumentError,
    Entry,
    choice_of,
    decode_text,
    items_of,
    mapping_of,
    parse_document,
    read_file,
    text_of,
)

Content: TypeAlias = "bytes | OSError | ValueError"  # what reading a file returned, or the error
LOG = logging.getLogger(__name__)
SECTIONS = ("tls_server_config", "http_server_config", "basic_auth_users", "rate_limit")
PEM_KEYS = ("cert", "cert_file", "key", "key_file", "client_ca", "client_ca_file")
POLICY_KEYS = ("client_auth_type", "client_allowed_sans", "min_version", "max_version")
CIPHER_KEYS = ("cipher_suites", "prefer_server_cipher_suites", "curve_preferences")
TLS_KEYS = PEM_KEYS + POLICY_KEYS + CIPHER_KEYS
HEADERS: Mapping[str, tuple[str, ...]] = {
    "Content-Security-Policy": (),
    "Strict-Transport-Security": (),
    "X-Content-Type-Options": ("nosniff",),
    "X-Frame-Options": ("deny", "sameorigin"),
    "X-XSS-Protection": (),
}
"""The headers that the format allows, each with its allowed values (empty: any value)."""

CLIENT_AUTH = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
UNVERIFIED_CLIENT_AUTH = ("RequestClientCert", "RequireAnyClientCert", "RequireClientCert")
VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
CURVES = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1", "X25519": "X25519"}
TLS13_SUITES = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
SUITES = {
    f"TLS_ECDHE_{key}_WITH_{cipher}": f"ECDHE-{key}-{openssl}"
    for key in ("ECDSA", "RSA")
    for cipher, openssl in (
        ("AES_128_CBC_SHA", "AES128-SHA"),
        ("AES_256_CBC_SHA", "AES256-SHA"),
        ("AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
        ("CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
    )
}
"""Go's names of the suites up to TLS 1.2 that Go considers secure, and OpenSSL's names."""

PATIENCE = 1.0
"""Seconds that a request waits for a check of the file, which may be on a file system that hangs."""
LONGEST_READ = 3600.0
"""Seconds after which a check that hangs is given up, and the next one waits for its thread."""
PEM_BYTES = 1 << 20  # four times the size of all public authorities of a host

UNREAD = ()  # the stamp of a file that could not be read: no file has it, so the next check reads it

BCRYPT = re.compile(r"\$2[aby]\$(0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}")
FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Pem(NamedTuple):
    """Certificates or a key: in a file, or inline in the web config file."""

    entry: Entry
    path: Path | None
    content: Content


class WebConfigFile:
    """A web config file that is reloaded when it changes. All calls after the first come from one event loop."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Read the file, at the start and therefore without a thread. Raises DocumentError: the file is invalid."""
        self._path = Path(path)
        self._seen = {self._path: stamp(self._path)}
        self._config = WebConfig()
        self._logged: object = None
        self._thread = CallThread()
        self._check: asyncio.Task[None] | None = None
        self._since = 0.0
        """When the check under way began, by the clock of the event loop."""
        self._is_late = False
        """Whether it takes longer than PATIENCE, which has been logged."""
        self._config = self._load()

    async def current(self) -> WebConfig:
        """The configuration of the file as it is now; if that cannot be used or read within PATIENCE, the previous one.

        A change costs one reload, which all requests share. Its error is logged once.
        """
        # Twice: a check that is under way may have read the file before its latest change.
        for _ in range(2):
            is_new = self._check is None
            if self._check is None:
                self._since = asyncio.get_running_loop().time()
                self._check = asyncio.create_task(self._follow())
            # A client that disconnects must not cancel the check that other requests wait for.
            left = self._since + PATIENCE - asyncio.get_running_loop().time()
            if left <= 0 or not (await asyncio.wait((self._check,), timeout=left))[0]:
                if not self._is_late:
                    LOG.warning(
                        "%s or a file that it names cannot be read; keeping the previous configuration",
                        self._path,
                    )
                self._is_late = True
                break
            if is_new:
                break
        return self._config

    async def _follow(self) -> None:
        try:
            await run_in_thread(self._look, LONGEST_READ, self._thread)
        except (TimeoutError, RuntimeError) as error:
            LOG.error("%s was not checked: %s", self._path, error)  # noqa: TRY400 - there is no more to say
        finally:
            self._check = None
            self._is_late = False

    def _look(self) -> None:
        """Read the file again if it or a file that it names has changed; blocks, as file systems do."""
        seen = {file: stamp(file) for file in self._seen}
        if seen == self._seen:
            return
        self._seen = dict(seen)
        config, problem = self._config, ""
        try:
            config = self._load()
        except DocumentError as error:
            problem = str(error)
        if (config.tls is None) != (self._config.tls is None):
            problem = f"{self._path}: tls_server_config: switching TLS on or off requires a restart"
        if problem:
            logged, self._logged = self._logged, (problem, seen)
            if logged != self._logged:
                LOG.error("%s; keeping the previous configuration", problem)
            return
        self._config = config
        LOG.info("%s has changed and was reloaded", self._path)

    def _read(self, file: Path, limit: int) -> Content:
        """The content of a file or its error, after which it counts as changed: what ends a shortage of descriptors changes no file."""
        content = read_file(file, limit)
        if isinstance(content, OSError):
            self._seen[file] = UNREAD
        return content

    def _load(self) -> WebConfig:
        text = decode_text(self._path, self._read(self._path, MAX_BYTES), "--web.config.file")
        # A file that is being rewritten in place is empty for a moment. That must not remove the authentication.
        if not text.strip() and self._config != WebConfig():
            raise DocumentError(
                f"{self._path}: is empty; write it, or restart to serve without authentication"
            )
        sections = mapping_of(parse_document(self._path, text), SECTIONS)
        tls = mapping_of(sections.get("tls_server_config"), TLS_KEYS)
        pems = _pems(tls)
        # Before they are read, and also if they do not exist yet, so that their next change is noticed.
        named = {pem.path: stamp(pem.path) for pem in pems.values() if pem.path}
        self._seen = {self._path: self._seen[self._path]} | named
        for name, pem in pems.items():
            if pem.path:
                pems[name] = pem._replace(content=self._read(pem.path, PEM_BYTES))
        return WebConfig(
            tls=_context(sections["tls_server_config"], tls, pems) if tls else None,
            allowed_sans=frozenset(map(text_of, items_of(tls.get("client_allowed_sans")))),
            headers=_headers(mapping_of(sections.get("http_server_config"), ("http2", "headers"))),
            users=_users(mapping_of(sections.get("basic_auth_users"))),
            rate_limit=_rate_limit(mapping_of(sections.get("rate_limit"), ("interval", "burst"))),
        )


def _flag(entry: Entry) -> bool:
    if entry.node.tag != "tag:yaml.org,2002:bool" or (text := text_of(entry).lower()) not in FLAGS:
        entry.refuse("is neither true nor false; use one of them")
    return FLAGS[text]


def _users(fields: Mapping[str, Entry]) -> dict[bytes, bytes]:
    for entry in fields.values():
        if not BCRYPT.fullmatch(text_of(entry)):
            entry.refuse("is not a bcrypt hash; make one with `htpasswd -nBC 10 USER`")
    return {name.encode(): text_of(entry).encode() for name, entry in fields.items()}


def _headers(fields: Mapping[str, Entry]) -> tuple[tuple[str, str], ...]:
    if "http2" in fields:
        _flag(fields["http2"])
    found = []
    for name, entry in mapping_of(fields.get("headers"), tuple(HEADERS)).items():
        value = choice_of(entry, HEADERS[name]) if HEADERS[name] else text_of(entry)
        if not (value.isascii() and value.isprintable() and value == value.strip() != ""):
            entry.refuse(
                "cannot be sent in a header; use printable ASCII in one line, without surrounding blanks"
            )
        found.append((name, value))
    return tuple(found)


def _rate_limit(fields: Mapping[str, Entry]) -> RateLimit | None:
    value = text_of(fields["interval"]) if "interval" in fields else "0"
    interval = 0.0 if value == "0" else seconds_of(value)
    if interval is None:
        fields["interval"].refuse("is not a duration; write it with its unit, such as 500ms, 1s or 1m30s")
    burst = text_of(fields["burst"]) if "burst" in fields else "0"
    if not re.fullmatch("[0-9]{1,9}", burst):
        fields["burst"].refuse(
            "is not a whole number; set it to the number of requests that may arrive at once"
        )
    if interval and not int(burst):
        fields["interval"].refuse(
            "needs a burst of at least 1, otherwise every request would be refused; set burst"
        )
    return RateLimit(interval, int(burst)) if interval else None


def _pems(fields: Mapping[str, Entry]) -> dict[str, Pem]:
    """The values of `cert`, `key` and `client_ca` that are present."""
    pems: dict[str, Pem] = {}
    for name in ("cert", "key", "client_ca"):
        inline, file = fields.get(name), fields.get(f"{name}_file")
        if inline and file:
            inline.refuse(f"is given in addition to {name}_file; keep one of them")
        if inline:
            pems[name] = Pem(inline, None, text_of(inline).encode())
        elif file:
            pems[name] = Pem(file, file.file.parent / text_of(file), b"")
    return pems


def _context(section: Entry, fields: Mapping[str, Entry], pems: Mapping[str, Pem]) -> ssl.SSLContext:
    if missing := [name for name in ("cert", "key") if name not in pems]:
        section.refuse(f"missing {missing[0]}_file; name the PEM file, or remove the section")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    versions = {"min_version": ssl.TLSVersion.TLSv1_2, "max_version": ssl.TLSVersion.TLSv1_3}
    for key in versions.keys() & fields.keys():
        versions[key] = VERSIONS[choice_of(fields[key], VERSIONS)]
    if versions["min_version"] > versions["max_version"]:
        fields["min_version"].refuse("is above max_version; raise max_version")
    context.minimum_version, context.maximum_version = versions["min_version"], versions["max_version"]
    _set_ciphers(context, fields)
    _set_verification(context, fields, pems.get("client_ca"))
    _load_certificate(context, pems["cert"], pems["key"])
    return context


def _set_ciphers(context: ssl.SSLContext, fields: Mapping[str, Entry]) -> None:
    entry = fields.get("cipher_suites")
    named = {choice_of(item, (*SUITES, *TLS13_SUITES)): None for item in items_of(entry)}
    suites = [SUITES[name] for name in named if name in SUITES]
    if entry and len(named.keys() & {*TLS13_SUITES}) not in (0, len(TLS13_SUITES)):
        entry.refuse("ssl cannot select individual suites of TLS 1.3; list all three of them or none")
    if entry and not suites and context.minimum_version < ssl.TLSVersion.TLSv1_3:
        entry.refuse("leaves no suite for TLS 1.2; add one, or set min_version to TLS13")
    if suites:
        context.set_ciphers(":".join(suites))
    if "prefer_server_cipher_suites" in fields and not _flag(fields["prefer_server_cipher_suites"]):
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    for position, item in enumerate(items_of(fields.get("curve_preferences"))):
        if position:
            item.refuse("ssl can be limited to one curve only; list one, or remove the key")
        curve = CURVES[choice_of(item, CURVES)]
        try:
            context.set_ecdh_curve(curve)
        except ssl.SSLError:  # X25519 alone, with Python 3.11.2 on OpenSSL 3.0
            item.refuse(
                "this Python's ssl cannot be limited to this curve; choose another, or remove the key"
            )


def _set_verification(context: ssl.SSLContext, fields: Mapping[str, Entry], authority: Pem | None) -> None:
    policy, sans = fields.get("client_auth_type"), fields.get("client_allowed_sans")
    if policy and text_of(policy) in UNVERIFIED_CLIENT_AUTH:
        policy.refuse("ssl cannot request a certificate without verifying it; use RequireAndVerifyClientCert")
    context.verify_mode = CLIENT_AUTH[choice_of(policy, CLIENT_AUTH)] if policy else ssl.CERT_NONE
    if authority and context.verify_mode is ssl.CERT_NONE:
        authority.entry.refuse("has no effect by itself; set client_auth_type to RequireAndVerifyClientCert")
    if authority:
        _load_authority(context, authority)
    elif policy and context.verify_mode is not ssl.CERT_NONE:
        # Go would fall back to the host's public authorities: the owner of any web site would be accepted.
        policy.refuse("needs an authority to trust; name it with client_ca_file")
    if sans and not (items_of(sans) and context.verify_mode is ssl.CERT_REQUIRED):
        sans.refuse("needs at least one name, and client_auth_type: RequireAndVerifyClientCert; set both")


def _pem_text(pem: Pem) -> str:
    if isinstance(pem.content, OSError | ValueError):
        problem = getattr(pem.content, "strerror", "not a valid path")
        pem.entry.refuse(f"{pem.path} cannot be read: {problem}; correct the path or its permissions")
    if len(pem.content) > PEM_BYTES:  # OpenSSL would never stop reading a device such as /dev/zero
        pem.entry.refuse(f"{pem.path} is larger than {PEM_BYTES >> 20} MiB; name a PEM file")
    return pem.content.decode("ascii", "ignore")


def _load_authority(context: ssl.SSLContext, pem: Pem) -> None:
    try:
        context.load_verify_locations(cadata=_pem_text(pem))
    except (ssl.SSLError, ValueError):
        pem.entry.refuse("contains no certificate; provide one in PEM format")


def _load_certificate(context: ssl.SSLContext, certificate: Pem, key: Pem) -> None:
    _load_authority(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate)  # only to check that it is one
    key_text = _pem_text(key)
    try:
        with (
            _as_file(certificate, _pem_text(certificate)) as certificate_path,
            _as_file(key, key_text) as key_path,
        ):
            # Without a password OpenSSL would prompt for one on the terminal.
            context.load_cert_chain(certificate_path, key_path, password="")
    except FileNotFoundError:
        key.entry.refuse("needs /proc if it is not in a file; use cert_file and key_file")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or "unreadable"
        key.entry.refuse(
            f"does not match the certificate ({reason}); provide its unencrypted key in PEM format"
        )


@contextlib.contextmanager
def _as_file(pem: Pem, text: str) -> Iterator[str]:
    """A path by which OpenSSL can read it. Inline text stays in memory: a key is never written to a disk."""
    if pem.path:
        yield str(pem.path)
        return
    descriptor = os.memfd_create("pem")
    try:
        os.write(descriptor, text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
