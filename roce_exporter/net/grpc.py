"""gRPC: set to print nothing, messages from tables instead of generated code, and TLS credentials for TlsFiles.

gRPC's C core writes failed handshakes to standard error, which are faults of sources here. It verifies by itself, against the
authorities of `ca_file` or else those of the system, and the name of the target. It cannot be configured to verify nothing. So
`insecure_skip_verify` fetches the certificate that the server shows, trusts that one alone for this round, and verifies one of its
own names: whoever is in between can show another one, as with every client that verifies nothing. An expired certificate is
refused even so.

A table of messages has those that are used and no others, so what is not in it can be neither sent nor read. The descriptors are
in a pool of their own: another copy of the same messages in this process does no harm.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from roce_exporter.net import NetError
from roce_exporter.net.tls import EXPIRED, TlsFiles, client_context, connection_fault, expiry_text, handshake
from roce_exporter.words import word_list

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # gRPC reads it when it is imported

import grpc
import grpc.aio

__all__ = ["CHANNEL_OPTIONS", "grpc", "start_grpc"]


CHANNEL_OPTIONS = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.enable_retries", 0),
    # Without it a closed channel and the next one to this address share a connection, and with it credentials.
    ("grpc.use_local_subchannel_pool", 1),
)


@cache
def start_grpc() -> None:
    """Start gRPC's thread, and keep it: else every first channel starts one on the event loop, without a limit, and the last ends it."""
    grpc.aio.init_grpc_aio()


KINDS = {
    kind: FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
    for kind in word_list("string bytes bool int32 int64 uint32 uint64 float double")
}


def message_classes(package: str, messages: Mapping[str, str]) -> dict[str, type[Any]]:
    """The class of each message.

    `messages` maps a message's name to its fields: type, name and number of each, separated by commas, `repeated` before
    the type. They are `proto2`, so that presence is known without `oneof`.
    """
    file = FileDescriptorProto(name=f"roce_exporter/{package}.proto", package=package, syntax="proto2")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for text in fields.split(", "):
            *label, kind, field, number = text.split()
            added = message.field.add(name=field, number=int(number))
            added.label = (
                FieldDescriptorProto.LABEL_REPEATED if label else FieldDescriptorProto.LABEL_OPTIONAL
            )
            added.type = KINDS.get(kind, FieldDescriptorProto.TYPE_MESSAGE)
            if kind not in KINDS:
                added.type_name = f".{package}.{kind}"
    pool = DescriptorPool()
    pool.Add(file)
    return {name: GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in messages}


NO_MESSAGE = "the reply is cut off, or is no message of gRPC: check the port"
VARINT, BYTES = 0, 2  # types of fields (https://protobuf.dev/programming-guides/encoding/)
SIZES = {1: 8, 5: 4}  # octets of the types that have a fixed number of them


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a message as they come, each with its number and its bytes; of a number, those that encode it.

    protobuf makes objects of a whole message at once. This is for parts that must be counted first. Raises NetError: it is no message.
    """
    place, size = 0, len(message)
    try:
        while place < size:
            tag, place = _varint(message, place)
            kind, begin = tag & 7, place
            if kind == BYTES:
                length, begin = _varint(message, place)
                place = begin + length
            elif kind == VARINT:
                _, place = _varint(message, place)
            else:
                place += SIZES[kind]
            if place > size:
                raise NetError(NO_MESSAGE)
            yield tag >> 3, message[begin:place]
    except (IndexError, KeyError):  # it ends in a number; no known type
        raise NetError(NO_MESSAGE) from None


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """A number of base 128, and where it ends."""
    if (found := message[place]) < 128:  # noqa: PLR2004 - nearly all
        return found, place + 1
    found &= 127
    for shift in range(7, 70, 7):
        place += 1
        octet = message[place]
        found |= (octet & 127) << shift
        if octet < 128:  # noqa: PLR2004 - the last one
            return found, place + 1
    raise NetError(NO_MESSAGE)


SYSTEM_AUTHORITIES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")
"""Where Debian and Red Hat keep them; OpenSSL's own default is used first. Without a file gRPC has a list in its package."""


async def grpc_credentials(
    files: TlsFiles, address: str, port: int, name: str
) -> tuple[grpc.ChannelCredentials, str]:
    """The credentials for a channel, and the name that it must verify. Raises NetError: a file cannot be used, or the server shows no certificate."""
    context = client_context(files)
    roots = _authorities(files)
    if files.insecure_skip_verify:
        shown, name = await _shown_certificate(context, address, port, name)
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


async def _shown_certificate(context: ssl.SSLContext, address: str, port: int, name: str) -> tuple[str, str]:
    """The certificate that the server shows, as PEM, and one of its names."""
    try:
        shown, _ = await handshake(context, address, port, name)
        pem = ssl.DER_cert_to_PEM_cert(shown)
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname = False
        trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        trusting.load_verify_locations(cadata=pem)
        # OpenSSL decodes a certificate only for a context that has verified it.
        _, found = await handshake(trusting, address, port, name)
    except OSError as error:
        fault = connection_fault(error, f"{address}:{port}")
        if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code == EXPIRED:
            fault += await expiry_text(address, port, name)
        raise NetError(fault) from None
    named = [value for kind, value in found.get("subjectAltName", ()) if kind in ("DNS", "IP Address")]
    # The common name counts only where there is no other name (RFC 6125). A wildcard becomes a name that it covers.
    common = [value for part in found.get("subject", ()) for key, value in part if key == "commonName"]
    names = [one.replace("*", "any", 1) for one in named or common]
    if not names:
        raise NetError(
            "insecure_skip_verify: the server's certificate has no name: give it one, or use ca_file"
        )
    return pem, name if name in names else names[0]
