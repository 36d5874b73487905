"""What a web config file says, as the server uses it. `config_file` reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping


class WebConfigError(Exception):
    """A web config file that cannot be used: one line that names the file, the line, the key and the remedy."""


class RateLimit(NamedTuple):
    """`burst` requests at once, then one every `interval` seconds."""

    interval: float
    burst: int


@dataclass(frozen=True, slots=True)
class WebConfig:
    """What a web config file says, ready for use. By itself: no TLS, everybody welcome."""

    tls: ssl.SSLContext | None = None
    allowed_sans: frozenset[str] = frozenset()
    """Subject alternative names of which a client's certificate must carry one; none: any certificate will do."""
    headers: tuple[tuple[str, str], ...] = ()
    users: Mapping[bytes, bytes] = field(default_factory=dict)
    """User names, and the bcrypt hashes of their passwords."""
    rate_limit: RateLimit | None = None
