"""The packets of STAMP: RFC 8762, with the extensions of RFC 8972 that a probe of RoCE needs.

A request and its reply have the same length, so a responder amplifies nothing. Both carry two extensions: Class of Service (the DSCP
and ECN that the responder received) and Follow-Up Telemetry (when the kernel really sent an earlier reply, which is known only
afterwards). Times are truncated PTP timestamps (IEEE 1588: 32 bits of seconds, 32 of nanoseconds), in nanoseconds here. With a key all
packets are those of the authenticated mode, and the extensions end with an HMAC of their own.

All functions are pure. A packet that is not valid is a `StampError`, whatever it contains.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import NamedTuple

DEFAULT_PORT = 10124
"""The STAMP port 862 is privileged and belongs to switches; 4791 is RoCE itself and is never used."""

PTP_UNSYNCHRONIZED = 0x4001
"""Error Estimate (RFC 8762 section 4.2.1): clock not synchronised, PTP format, multiplier 1. Clocks of two hosts are never compared."""
DIGEST = 16  # HMAC-SHA-256 is truncated to 16 octets (RFC 8762 section 4.4)

PADDING, CLASS_OF_SERVICE, FOLLOW_UP, HMAC_TLV = 1, 4, 7, 8
"""Types of extensions (RFC 8972 section 5.2)."""
UNRECOGNIZED, MALFORMED, INTEGRITY = 0x80, 0x40, 0x20
"""Flags of an extension that a responder sets (RFC 8972 section 4)."""
SOFTWARE_LOCAL, HARDWARE_ASSIST = 2, 1
"""Timestamping methods (RFC 8972 section 5.5)."""

TLV = struct.Struct("!BBH")
FOLLOW_UP_VALUE = struct.Struct("!IIIB3x")
COS_VALUE = struct.Struct("!I")

OPEN_REQUEST = struct.Struct("!IIIHH28x")
OPEN_REPLY = struct.Struct("!IIIHHIIIIIH2xB3x")
KEYED_REQUEST = struct.Struct("!I12xIIHH68x")
KEYED_REPLY = struct.Struct("!I12xIIHH4xII8xI12xIIH6xB15x")
"""The head without the HMAC that follows it in the authenticated mode."""

OPEN_UNUSED, KEYED_UNUSED = slice(16, None), slice(28, None)
"""Octets of a request that must be zero."""

EXTENSIONS = TLV.size + COS_VALUE.size + TLV.size + FOLLOW_UP_VALUE.size
LARGEST = 1500  # longer packets of other implementations are padded; more is not read


class StampError(Exception):
    """A packet is not what it should be; one word says why, as a label of the counter of dropped packets."""


class FollowUp(NamedTuple):
    """When an earlier reply of the session left."""

    sequence: int
    sent: int
    method: int
    """`SOFTWARE_LOCAL` or `HARDWARE_ASSIST`."""


class StampRequest(NamedTuple):
    """What a sender sends."""

    sequence: int
    sent: int
    """Nanoseconds by the sender's clock, before the kernel has taken the packet."""
    session: int
    """The sender's identifier (SSID), 0 to 65535."""
    dscp: int | None = None
    """The DSCP that the reply shall have; None: that of the request."""
    error_estimate: int = PTP_UNSYNCHRONIZED


class StampReply(NamedTuple):
    """What a sender needs of a reply. When it left is in the follow-up of a later one."""

    sequence: int
    session: int
    received: int
    """When the request arrived, by the responder's clock."""
    tos: int | None
    """The TOS or traffic class octet of the request as it arrived; None if the responder does not report it."""
    follow_up: FollowUp | None


def _time(nanoseconds: int) -> tuple[int, int]:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return seconds & 0xFFFFFFFF, rest


def _digest(key: bytes, content: bytes) -> bytes:
    return hmac.digest(key, content, hashlib.sha256)[:DIGEST]


def pack_request(request: StampRequest, key: bytes = b"") -> bytes:
    """The octets of a request with both extensions."""
    form = KEYED_REQUEST if key else OPEN_REQUEST
    head = form.pack(request.sequence, *_time(request.sent), request.error_estimate, request.session)
    extensions = (
        TLV.pack(UNRECOGNIZED, CLASS_OF_SERVICE, COS_VALUE.size)
        + COS_VALUE.pack((request.dscp or 0) << 26)
        + TLV.pack(UNRECOGNIZED, FOLLOW_UP, FOLLOW_UP_VALUE.size)
        + FOLLOW_UP_VALUE.pack(0, 0, 0, 0)
    )
    return _signed(head, extensions, key)


def _signed(head: bytes, extensions: bytes, key: bytes) -> bytes:
    if not key:
        return head + extensions
    digest = _digest(key, head)
    # RFC 8972 section 4.8: the HMAC of the extensions covers the sequence number and the extensions before it.
    return head + digest + extensions + TLV.pack(0, HMAC_TLV, DIGEST) + _digest(key, head[:4] + extensions)


def read_request(packet: bytes, key: bytes = b"") -> StampRequest:
    """The request in a packet.

    Raises:
        StampError: `short`, `long`, `authentication`, `malformed`, or `no_request`: where a request has zeros, a reply has times, so
            two responders cannot answer each other.
    """
    form = KEYED_REQUEST if key else OPEN_REQUEST
    head = _checked(packet, form, key)
    if any(head[KEYED_UNUSED if key else OPEN_UNUSED]):
        raise StampError("no_request")
    sequence, seconds, rest, estimate, session = form.unpack(head)
    dscp = None
    for _, kind, value in _extensions(packet, len(head), key):
        if kind == CLASS_OF_SERVICE and len(value) == COS_VALUE.size:
            dscp = COS_VALUE.unpack(value)[0] >> 26
    return StampRequest(sequence, seconds * 1_000_000_000 + rest, session, dscp, estimate)


def _checked(packet: bytes, form: struct.Struct, key: bytes) -> bytes:
    if len(packet) < form.size + (DIGEST if key else 0):
        raise StampError("short")
    if len(packet) > LARGEST:
        raise StampError("long")
    head = packet[: form.size]
    if key and not hmac.compare_digest(packet[form.size : form.size + DIGEST], _digest(key, head)):
        raise StampError("authentication")
    return head


def _extensions(packet: bytes, head: int, key: bytes) -> list[tuple[int, int, bytes]]:
    """Flags, type and value of each extension; with a key those before the HMAC, which must be right."""
    start = at = head + (DIGEST if key else 0)
    found: list[tuple[int, int, bytes]] = []
    while at < len(packet):
        if len(packet) - at < TLV.size:
            raise StampError("malformed")
        flags, kind, length = TLV.unpack_from(packet, at)
        value = packet[at + TLV.size : at + TLV.size + length]
        if len(value) < length:
            raise StampError("malformed")
        if key and kind == HMAC_TLV:
            if not hmac.compare_digest(value, _digest(key, packet[:4] + packet[start:at])):
                raise StampError("authentication")
            return found
        if kind == 0 and not flags and not length:
            break  # padding of zeros, as implementations of RFC 8762 alone send it
        found.append((flags, kind, value))
        at += TLV.size + length
    if key and found:
        raise StampError("authentication")
    return found


def pack_reply(
    packet: bytes,
    request: StampRequest,
    *,
    received: int,
    sent: int,
    ttl: int,
    tos: int | None,
    follow_up: FollowUp | None,
    key: bytes = b"",
) -> bytes:
    """The reply to a request: as long as `packet`, which is the request, with its extensions filled in.

    `tos` is None where the kernel did not report it; the extension then goes back marked as not recognised.
    """
    head = (KEYED_REPLY if key else OPEN_REPLY).pack(
        request.sequence,
        *_time(sent),
        PTP_UNSYNCHRONIZED,
        request.session,
        *_time(received),
        request.sequence,
        *_time(request.sent),
        request.error_estimate,
        ttl,
    )
    filled = (follow_up.sequence, *_time(follow_up.sent), follow_up.method) if follow_up else (0, 0, 0, 0)
    extensions = b""
    for _, kind, value in _extensions(packet, len(head), key):
        flags, answer = 0, value
        if kind == CLASS_OF_SERVICE and len(value) == COS_VALUE.size and tos is not None:
            # DSCP1 as the request has it, DSCP2 and ECN as received (RFC 8972 section 4.4).
            wanted = COS_VALUE.unpack(value)[0] & 0xFC000000
            answer = COS_VALUE.pack(wanted | (tos >> 2) << 20 | (tos & 3) << 18)
        elif kind == FOLLOW_UP and len(value) == FOLLOW_UP_VALUE.size:
            answer = FOLLOW_UP_VALUE.pack(*filled)
        elif kind != PADDING:
            flags = UNRECOGNIZED
        extensions += TLV.pack(flags, kind, len(value)) + answer
    reply = _signed(head, extensions, key) if extensions or not key else head + _digest(key, head)
    return reply + packet[len(reply) :]


def read_reply(packet: bytes, key: bytes = b"") -> StampReply:
    """The reply in a packet.

    Raises:
        StampError: `short`, `long`, `authentication` or `malformed`.
    """
    tos, follow_up = None, None
    form = KEYED_REPLY if key else OPEN_REPLY
    head = _checked(packet, form, key)
    _, _, _, _, session, seconds, rest, sequence, *_ = form.unpack(head)
    received = seconds * 1_000_000_000 + rest
    for flags, kind, value in _extensions(packet, len(head), key):
        if flags & (UNRECOGNIZED | MALFORMED | INTEGRITY):
            continue
        if kind == CLASS_OF_SERVICE and len(value) == COS_VALUE.size:
            # DSCP2 and ECN (RFC 8972 section 4.4)
            (bits,) = COS_VALUE.unpack(value)
            tos = (bits >> 20 & 0x3F) << 2 | bits >> 18 & 3
        elif kind == FOLLOW_UP and len(value) == FOLLOW_UP_VALUE.size:
            of, seconds, rest, method = FOLLOW_UP_VALUE.unpack(value)
            follow_up = FollowUp(of, seconds * 1_000_000_000 + rest, method) if method else None
    return StampReply(sequence, session, received, tos, follow_up)
