"""TLS of gNMI: the credentials of a gRPC channel for TlsFiles.

gRPC verifies by itself, against the authorities of `ca_file` or else those of the system, and the name of the target. It
cannot be told to verify nothing. So `insecure_skip_verify` fetches the certificate that the switch shows, trusts that one alone
for this visit, and verifies one of its own names: whoever is in between can show another one, as with every client that verifies
nothing. An expired certificate is refused even so.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roce_exporter.net import NetError
from roce_exporter.net.quiet_grpc import grpc
from roce_exporter.net.tls import client_context, connection_fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roce_exporter.net.tls import TlsFiles
    from roce_exporter.switches.targets import Route

SYSTEM_AUTHORITIES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")
"""Where Debian and Red Hat keep them; OpenSSL's own default is used first. Without a file gRPC has a list in its package."""


async def grpc_credentials(
    files: TlsFiles, route: Route, port: int, name: str
) -> tuple[grpc.ChannelCredentials, str]:
    """The credentials for a channel, and the name that it must verify.

    Raises:
        NetError: a file cannot be used, or the switch shows no certificate.
    """
    context = client_context(files)
    roots = _authorities(files)
    if files.insecure_skip_verify:
        shown, name = await _shown_certificate(context, route, port, name)
        roots = shown.encode()
    chain = _content(files.cert_file)
    key = _content(files.key_file) if files.key_file else chain
    return grpc.ssl_channel_credentials(roots, key, chain), name


def _authorities(files: TlsFiles) -> bytes | None:
    places = (ssl.get_default_verify_paths().cafile, *SYSTEM_AUTHORITIES)
    system = next((Path(place) for place in places if place and Path(place).is_file()), None)
    return _content(files.ca_file or system)


def _content(path: Path | None) -> bytes | None:
    try:
        return path.read_bytes() if path else None
    except OSError as error:
        raise NetError(f"tls: {path} cannot be read: {error.strerror}") from None


async def _shown_certificate(context: ssl.SSLContext, route: Route, port: int, name: str) -> tuple[str, str]:
    """The certificate that the switch shows, as PEM, and one of its names."""
    try:
        shown, _ = await _handshake(context, route, port, name)
        pem = ssl.DER_cert_to_PEM_cert(shown)
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname = False
        trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        trusting.load_verify_locations(cadata=pem)
        # OpenSSL decodes a certificate only for a context that has verified it.
        _, names = await _handshake(trusting, route, port, name)
    except OSError as error:
        raise NetError(connection_fault(error, f"{route.address}:{port}")) from None
    if not names:
        raise NetError(
            "insecure_skip_verify: the switch's certificate has no name: give it one, or use ca_file"
        )
    return pem, name if name in names else names[0]


async def _handshake(
    context: ssl.SSLContext, route: Route, port: int, name: str
) -> tuple[bytes, tuple[str, ...]]:
    """The certificate of one handshake, and its names where the context has verified it."""
    _, writer = await asyncio.open_connection(route.address, port, ssl=context, server_hostname=name)
    try:
        shown = writer.get_extra_info("ssl_object")
        return shown.getpeercert(binary_form=True), certificate_names(shown.getpeercert())
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)  # the event loop closes the descriptor in its next cycle


def certificate_names(certificate: Mapping[str, Any]) -> tuple[str, ...]:
    """The names that a certificate is valid for, in the form of `ssl.SSLSocket.getpeercert`.

    A wildcard becomes a name that it covers. The common name counts only where there is no other name (RFC 6125).
    """
    others = [value for kind, value in certificate.get("subjectAltName", ()) if kind in ("DNS", "IP Address")]
    common = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    return tuple(name.replace("*", "any", 1) for name in others or common)
