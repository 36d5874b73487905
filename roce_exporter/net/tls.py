"""TLS of a client: the context for its files, and the failures of connections in one line each.

The keys are those of Prometheus' `tls_config`: with `ca_file` only that authority is trusted, else those of the system.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roce_exporter.net import NetError, meanings
from roce_exporter.words import word_list

VALIDITY = re.compile(rb"\x30[\x1e-\x22]" + 2 * rb"(?:\x17\x0d|\x18\x0f(?:\d\d))(\d{6})\d{6}Z")
"""When a certificate begins and ends to be valid, in DER (RFC 5280, section 4.1.2.5); the groups are YYMMDD."""
LOOK_SECONDS = 2.0

NOT_TLS = word_list(
    "WRONG_VERSION_NUMBER HTTP_REQUEST RECORD_LAYER_FAILURE UNKNOWN_PROTOCOL PACKET_LENGTH_TOO_LONG"
)
"""What OpenSSL says, by version, when the first bytes of the other end are no TLS record."""
CLIENT_CERTIFICATE = frozenset({"TLSV13_ALERT_CERTIFICATE_REQUIRED", "TLSV1_ALERT_UNKNOWN_CA"})
"""What a server that requires a client certificate sends when it gets none, or one that it does not trust."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """How the certificate of a server is verified, and which one the exporter shows. The keys of Prometheus' tls_config."""

    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    server_name: str = ""
    """The name in the server's certificate, where it is not the host of the address."""
    insecure_skip_verify: bool = False


SYSTEM_TLS = TlsFiles()  # the server's certificate is verified with the authorities of the system

CONTEXTS: dict[TlsFiles, tuple[object, ssl.SSLContext]] = {}
"""Contexts are kept because loading the system's authorities takes tens of milliseconds; one per kind of server."""


def client_context(files: TlsFiles) -> ssl.SSLContext:
    """The context for these files, loaded again when one of them has changed.

    Raises:
        NetError: a file cannot be read, or is not a certificate or key.
    """
    stamps = tuple(map(stamp, (files.ca_file, files.cert_file, files.key_file)))
    kept = CONTEXTS.get(files)
    if kept and kept[0] == stamps:
        return kept[1]
    context = _loaded(files)
    CONTEXTS[files] = (stamps, context)
    return context


def stamp(path: Path | None) -> tuple[int, ...] | None:
    """What differs when a file has changed; None if there is none."""
    try:
        status = os.stat(path or "")
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _loaded(files: TlsFiles) -> ssl.SSLContext:
    # Not ssl.create_default_context(): from Python 3.13 its strict mode refuses the certificates that switches make for themselves.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if files.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    own, key = files.cert_file, files.key_file
    try:
        if files.ca_file:
            context.load_verify_locations(files.ca_file)
        else:
            context.load_default_certs()
    except ssl.SSLError:
        raise NetError(f"tls: ca_file {files.ca_file} is not a PEM file of certificates") from None
    except OSError as error:
        raise NetError(f"tls: ca_file {files.ca_file} cannot be read: {error.strerror}") from None
    try:
        if own:
            # The empty password refuses an encrypted key; without it OpenSSL would prompt on the terminal.
            context.load_cert_chain(own, key, password="")
    except ssl.SSLError:
        raise NetError(
            f"tls: cert_file {own} and its key_file are not a PEM certificate with its unencrypted key"
        ) from None
    except OSError as error:
        raise NetError(f"tls: cert_file or key_file cannot be read: {error.strerror}") from None
    return context


def connection_fault(error: OSError, place: str) -> str:
    """One line for a connection to HOST:PORT that failed."""
    if isinstance(error, ssl.SSLError):
        return f"{place}: {tls_fault(error)}"
    if isinstance(error, ConnectionRefusedError):
        return f"{place} refuses connections: check the port, and that the service is enabled"
    if isinstance(error, ConnectionError):
        return f"{place}: the server closed the connection"
    if isinstance(error, TimeoutError) and not error.errno:
        return f"{place}: no connection in time"
    if isinstance(error, socket.gaierror):  # its numbers are none of the kernel's
        return f"{place}: the name cannot be resolved: {error.strerror}"
    reason = os.strerror(error.errno) if error.errno else "the connection failed"
    return f"{place}: {reason}"


def tls_fault(error: ssl.SSLError) -> str:
    """One line: what is wrong with TLS, and the remedy."""
    if isinstance(error, ssl.SSLCertVerificationError):
        remedy = meanings("certificate").get(str(error.verify_code), UNTRUSTED)
        return f"the server's certificate is refused: {error.verify_message.rstrip('.')}; {remedy}"
    reason = error.reason or "UNKNOWN"
    if reason in NOT_TLS:
        return (
            "the port does not speak TLS: correct the port, or write http:// if it is meant to be unencrypted"
        )
    if reason in CLIENT_CERTIFICATE or "CERTIFICATE" in reason:
        return f"the server refuses the exporter's certificate ({reason}): set cert_file and key_file"
    return f"the TLS handshake failed ({reason})"


async def handshake(
    context: ssl.SSLContext, address: str, port: int, name: str
) -> tuple[bytes, dict[str, Any]]:
    """The certificate that a server shows, in DER, and decoded where the context has verified it. Nothing is sent.

    Raises:
        OSError: the connection or the handshake failed.
    """
    _, writer = await asyncio.open_connection(address, port, ssl=context, server_hostname=name)
    try:
        shown = writer.get_extra_info("ssl_object")
        return shown.getpeercert(binary_form=True), shown.getpeercert()
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)  # the event loop closes the descriptor in its next cycle


async def expiry_text(address: str, port: int, name: str) -> str:
    """Until which day the server's certificate was valid, to be added to a fault; empty if it does not show one in time.

    OpenSSL does not say it of a certificate that it refuses, so this is one more handshake.
    """
    looking = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    looking.check_hostname = False
    looking.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            certificate, _ = await handshake(looking, address, port, name)
    except OSError:
        return ""
    shown = VALIDITY.search(certificate)
    if shown is None:
        return ""
    day = shown[2].decode()
    return f"; it was valid until 20{day[:2]}-{day[2:4]}-{day[4:]}"


EXPIRED = 10  # the code of OpenSSL, x509_vfy.h
UNTRUSTED = "set ca_file to the authority that signed it, or to the certificate itself"
