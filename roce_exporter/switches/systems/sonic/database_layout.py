"""Which of SONiC's databases is where: `database_config.json`, and `database_global.json` of switches with several ASICs.

The files are those of sonic-swss-common `common/database_config.json` and `database_global.json`. They decide; the numbers of
databases differ between images.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import aiofiles
import aiofiles.os

from roce_exporter.net import NetError
from roce_exporter.switches.systems.sonic.redis_client import RedisAddress

if TYPE_CHECKING:
    from roce_exporter.switches.targets import Route, SwitchTarget

APPL_DB, COUNTERS_DB, CONFIG_DB, STATE_DB = "APPL_DB", "COUNTERS_DB", "CONFIG_DB", "STATE_DB"
DEFAULT_NUMBERS = {APPL_DB: 0, COUNTERS_DB: 2, CONFIG_DB: 4, STATE_DB: 6}

FOLDER = Path("/var/run/redis/sonic-db")
ON_THE_SWITCH = (FOLDER / "database_global.json", FOLDER / "database_config.json")
"""Where SONiC has the files; the first exists only on switches with several ASICs."""

MOST_BYTES = 1 << 20
MOST_NAMESPACES = 64
LOOPBACK = frozenset({"", "127.0.0.1", "::1", "localhost"})
SINGLE_ASIC = ""


class DatabasePlace(NamedTuple):
    """Where the file says that one database is."""

    instance: str
    host: str
    port: int
    path: str
    number: int


class DatabaseNamespace(NamedTuple):
    """The databases of the host, or of one ASIC."""

    name: str
    databases: Mapping[str, DatabasePlace]
    """Empty if the file of the namespace cannot be used."""
    fault: str = ""
    """Why not: one line."""


class DatabaseLayout(NamedTuple):
    """All databases of a switch. Without a file: one instance, with the numbers of the community's SONiC."""

    namespaces: tuple[DatabaseNamespace, ...]

    @property
    def several(self) -> bool:
        """Whether there is more than one Redis, so that the target's port or path cannot be that of all of them."""
        servers = {(part.name, one.instance) for part in self.namespaces for one in part.databases.values()}
        return len(servers) > 1

    @property
    def asics(self) -> bool:
        """Whether the counters are in namespaces of ASICs."""
        return any(part.name for part in self.namespaces)


PLACES = {name: DatabasePlace("redis", "", 0, "", number) for name, number in DEFAULT_NUMBERS.items()}
DEFAULT_LAYOUT = DatabaseLayout((DatabaseNamespace(SINGLE_ASIC, PLACES),))


async def layout_of(target: SwitchTarget) -> DatabaseLayout:
    """The layout of a switch: of the file that the target names, or on the switch itself of SONiC's own file.

    Raises:
        NetError: the file cannot be read, or is not a database_config.json.
    """
    if target.database_config is not None:
        return await read_layout(target.database_config)
    if target.scheme == "unix":
        for path in ON_THE_SWITCH:
            if await aiofiles.os.path.exists(path):
                return await read_layout(path)
    return DEFAULT_LAYOUT


async def read_layout(path: Path) -> DatabaseLayout:
    """The layout in a file and those that it includes; an included file that cannot be used costs its namespace only."""
    document = await _document(path)
    includes = document.get("INCLUDES")
    if includes is None:
        return DatabaseLayout((DatabaseNamespace(SINGLE_ASIC, _places(document, path)),))
    if not isinstance(includes, list) or len(includes) > MOST_NAMESPACES:
        raise NetError(f"{path}: INCLUDES is not a list of at most {MOST_NAMESPACES} files")
    unique: dict[str, DatabaseNamespace] = {}
    for entry in includes:
        fields = entry if isinstance(entry, dict) else {}
        name, include = fields.get("namespace", SINGLE_ASIC), fields.get("include")
        if not isinstance(name, str) or not isinstance(include, str):
            raise NetError(f"{path}: an entry of INCLUDES has no file")
        place = path.parent / include
        try:
            part = DatabaseNamespace(name, _places(await _document(place), place))
        except NetError as error:
            part = DatabaseNamespace(name, {}, str(error))
        unique.setdefault(name, part)
    return DatabaseLayout(tuple(sorted(unique.values(), key=lambda part: part.name)))


async def _document(path: Path) -> dict[str, Any]:
    try:
        async with aiofiles.open(path, "rb") as file:
            content = await file.read(MOST_BYTES + 1)
    except OSError as error:
        raise NetError(f"{path}: {error.strerror}") from None
    try:
        document = json.loads(content) if len(content) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise NetError(f"{path}: not a database_config.json")
    return document


def _places(document: Mapping[str, Any], path: Path) -> dict[str, DatabasePlace]:
    instances, databases = document.get("INSTANCES"), document.get("DATABASES")
    if not isinstance(instances, dict) or not isinstance(databases, dict):
        raise NetError(f"{path}: INSTANCES or DATABASES is missing")
    found = {}
    for name in (name for name in DEFAULT_NUMBERS if name in databases):
        try:
            database = databases[name]
            instance = instances[database["instance"]]
            host, socket = (str(instance.get(key, "")) for key in ("hostname", "unix_socket_path"))
            port, number = int(instance.get("port", 0)), int(database["id"])
            found[name] = DatabasePlace(str(database["instance"]), host, port, socket, number)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise NetError(f"{path}: {name} has no instance or no id that can be used") from None
    return found


def address_of(
    layout: DatabaseLayout, part: DatabaseNamespace, name: str, target: SwitchTarget, route: Route
) -> RedisAddress:
    """Where to connect for a database.

    The address of the target is that of Redis if there is only one; with several, the file has the socket or the port of
    each, and the host is that of the target: it was checked, and is the only one that is connected to.

    Raises:
        NetError: the file has no such database, or only one that cannot be reached by this address.
    """
    place = part.databases.get(name)
    if place is None:
        raise NetError(part.fault or f"database_config has no {name}")
    if target.scheme == "unix":
        path = place.path if layout.several else route.address
        if not path:
            raise NetError(f"database_config has no unix_socket_path for the instance {place.instance}")
        return RedisAddress("", 0, path, place.number)
    if layout.several and place.host not in LOOPBACK | {target.host, route.address}:
        raise NetError(
            f"the instance {place.instance} is at {place.host}, which is not the address of the target: "
            "use the unix socket on the switch, or a target of its own"
        )
    port = place.port if layout.several else target.ports.get(target.scheme, 0)
    return RedisAddress(route.address, port, "", place.number)
