"""Replies of SONiC's gNMI server to tables by the names of ports, as the Redis door produces them.

The server (sonic-gnmi, `sonic_data_client/virtual_db.go`) names ports in its replies by the vendor's alias where they have one
(`Ethernet68/1:3`), and leaves out objects without counters. SonicNames and indexes come from the same maps as over Redis.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.switches.doors.gnmi_paths import path_text
from roce_exporter.switches.systems.sonic.keys import NAME_MAPS, WATERMARK_TABLES, SonicNames, names_of
from roce_exporter.switches.systems.sonic.tables import Fields, SonicWatermarks, fields_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from roce_exporter.switches.doors.gnmi_paths import Leaf
    from roce_exporter.switches.systems.sonic.tables import SonicGroup, SonicQueue


IDENTIFIER = re.compile(r"oid:0x[0-9a-f]{1,16}", re.ASCII)
"""An object identifier of SAI, as SONiC writes it."""


class MapReply(NamedTuple):
    """The name maps of one reply."""

    names: SonicNames
    queues: Fields
    """The object identifier of each queue by its name, `Ethernet68:3`."""
    groups: Fields
    """The object identifier of each priority group by its name, `Ethernet68:3`."""


def documents(leaves: Iterable[Leaf]) -> dict[str, object]:
    """The value of each path of a reply, by the path as text."""
    return {path_text(path): value for path, value in leaves}


def maps_of(leaves: Iterable[Leaf]) -> MapReply:
    """The name maps."""
    found = documents(leaves)
    maps = {name: fields_of(found.get(name)) for name in NAME_MAPS}
    names = names_of(list(maps.values()))
    return MapReply(names, maps["COUNTERS_QUEUE_NAME_MAP"], maps["COUNTERS_PG_NAME_MAP"])


def paths_of(table: str, oids: Iterable[str]) -> list[str]:
    """The paths of these objects in a table. What is no object identifier has no path: it came from the network."""
    return [f"{table}/{oid}" for oid in oids if IDENTIFIER.fullmatch(oid)]


def rows_of_tables(leaves: Iterable[Leaf], separator: str) -> dict[str, Fields]:
    """Rows by whole key, from replies with whole tables: `PFC_WD` and `Ethernet0` give `PFC_WD|Ethernet0`."""
    return {
        f"{table}{separator}{key}": fields_of(fields)
        for table, rows in documents(leaves).items()
        if isinstance(rows, dict)
        for key, fields in rows.items()
        if isinstance(fields, dict)
    }


def aliases_of(rows: Mapping[str, Fields]) -> dict[str, str]:
    """SONiC's name of each port by its alias, from the rows of CONFIG_DB."""
    return {
        fields["alias"]: key.removeprefix("PORT|")
        for key, fields in rows.items()
        if key.startswith("PORT|") and fields.get("alias")
    }


def objects_of(leaves: Iterable[Leaf], aliases: Mapping[str, str]) -> dict[str, Fields]:
    """The objects of a reply for all ports, by SONiC's name of the port and what follows it: `Ethernet68:3`."""
    found = {}
    for document in documents(leaves).values():
        for name, fields in document.items() if isinstance(document, dict) else ():
            port, colon, rest = name.partition(":")
            found[f"{aliases.get(port, port)}{colon}{rest}"] = fields_of(fields)
    return found


def hashes_of(leaves: Iterable[Leaf]) -> dict[str, Fields]:
    """The hashes of a reply for object identifiers (`COUNTERS/oid:0x15`), by path as text."""
    return {path: fields_of(document) for path, document in documents(leaves).items()}


def port_counters(objects: Mapping[str, Fields], names: SonicNames) -> dict[str, Fields]:
    """Counters of all ports; empty fields for a port that the reply leaves out."""
    return {port: objects.get(port, {}) for port in names.ports.values()}


def queue_counters(objects: Mapping[str, Fields], maps: MapReply) -> dict[SonicQueue, Fields]:
    """Counters of all queues; empty fields for a queue that the reply leaves out."""
    found = {oid: objects.get(name, {}) for name, oid in maps.queues.items()}
    return {queue: found[oid] for oid, queue in maps.names.queues.items()}


def group_counters(hashes: Mapping[str, Fields], names: SonicNames) -> dict[SonicGroup, Fields]:
    """Counters of the priority groups that were queried by object identifier."""
    return {group: hashes.get(f"COUNTERS/{oid}", {}) for oid, group in names.groups.items()}


def with_watermarks(
    window: str, hashes: Mapping[str, Fields], names: SonicNames, periodic: SonicWatermarks
) -> SonicWatermarks:
    """One window's watermarks: those that were queried by object identifier, and those that came with other replies."""
    table = WATERMARK_TABLES[window]
    part = {oid: hashes.get(f"{table}/{oid}") for oid in (*names.queues, *names.groups, *names.pools)}
    known = {oid: fields for oid, fields in part.items() if fields is not None}
    return SonicWatermarks(
        {**periodic.queues, **{names.queues[oid]: known[oid] for oid in names.queues if oid in known}},
        {**periodic.groups, **{names.groups[oid]: known[oid] for oid in names.groups if oid in known}},
        {**periodic.pools, **{names.pools[oid]: known[oid] for oid in names.pools if oid in known}},
    )


def periodic_watermarks(
    queues: Mapping[str, Fields], groups: Mapping[str, Fields], maps: MapReply
) -> SonicWatermarks:
    """The periodic window, from `COUNTERS/Ethernet*/Queues` (as `Ethernet68:3:periodic`) and from `.../PriorityGroups`."""
    of_queue = {oid: queues.get(f"{name}:periodic") for name, oid in maps.queues.items()}
    of_group = {oid: groups.get(name) for name, oid in maps.groups.items()}
    return SonicWatermarks(
        {queue: fields for oid, queue in maps.names.queues.items() if (fields := of_queue[oid])},
        {group: fields for oid, group in maps.names.groups.items() if (fields := of_group[oid])},
        {},
    )
