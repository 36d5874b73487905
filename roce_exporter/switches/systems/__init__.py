"""The modules by name. Each is imported when a target uses it, because two of them need packages of an extra."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, NamedTuple, cast

from roce_exporter.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roce_exporter.switches.readings import Module


class System(NamedTuple):
    """Where a module is, and what it needs."""

    file: str
    """The module, below this package."""
    schemes: Mapping[str, int]
    """The schemes of its addresses, each with its default port; the first one is the default."""
    extra: str = ""
    """The extra of the package that brings the library of its protocol."""


SYSTEMS = {
    "sonic": System("sonic.redis_requests", {"redis": 6379, "rediss": 6379, "unix": 0}),
    "sonic_gnmi": System("sonic.gnmi_requests", {"grpc": 50051, "grpc+insecure": 50051}, "gnmi"),
    "nxos": System("nxos.requests", {"https": 443, "http": 80}),
    "eos": System("eos.requests", {"grpc": 6030, "grpc+insecure": 6030, "https": 443}, "gnmi"),
    "cumulus": System("cumulus.requests", {"https": 8765}),
}


class ModuleMissingError(UserError):
    """A module cannot be used because a package is not installed: one line with the remedy."""


def load_module(name: str) -> Module:
    """The module of this name, which is a key of `SYSTEMS`.

    Raises:
        ModuleMissingError: a package that it needs is not installed.
    """
    system = SYSTEMS[name]
    try:
        found = importlib.import_module(f"roce_exporter.switches.systems.{system.file}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("roce_exporter"):
            raise
        raise ModuleMissingError(
            f"module {name} needs the package {error.name}; install roce-exporter[{system.extra}]"
        ) from None
    return cast("Module", found.MODULE)
