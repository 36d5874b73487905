"""The contents of a web config file in the form that the server uses. `web_config_file` reads the file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.errors import UserError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping


class WebConfigError(UserError):
    """An invalid web config file: one line that names the file, the line, the key and the remedy."""


class RateLimit(NamedTuple):
    """`burst` requests at once, then one every `interval` seconds."""

    interval: float
    burst: int


@dataclass(frozen=True, slots=True)
class WebConfig:
    """The settings of a web config file. Default: no TLS, no authentication."""

    tls: ssl.SSLContext | None = None
    allowed_sans: frozenset[str] = frozenset()
    """A client's certificate must have one of these subject alternative names; empty: any certificate is accepted."""
    headers: tuple[tuple[str, str], ...] = ()
    users: Mapping[bytes, bytes] = field(default_factory=dict)
    """User names, and the bcrypt hashes of their passwords."""
    rate_limit: RateLimit | None = None
