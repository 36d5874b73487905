"""What SONiC's gNMI server replies to a Get, from the hashes of its databases: its rules for virtual paths and tables.

After sonic-gnmi, `sonic_data_client/virtual_db.go` and `db_client.go`. Tests compare it with recorded pairs of raw hash and reply.
"""

from typing import Any

from gnmi_switch import GnmiQuestion, RefusedError, get_response, ietf

from roce_exporter.net.gnmi_messages import path_of
from roce_exporter.net.grpc import grpc

Hashes = dict[str, dict[str, str]]
Databases = dict[str, Hashes]

SEPARATORS = {"COUNTERS_DB": ":", "APPL_DB": ":", "CONFIG_DB": "|", "STATE_DB": "|"}
WATERMARK = "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"
PATHS = {
    "COUNTERS/Ethernet*": "COUNTERS_PORT_NAME_MAP",
    "COUNTERS/Ethernet*/Queues": "COUNTERS_QUEUE_NAME_MAP",
    "COUNTERS/Ethernet*/Pfcwd": "COUNTERS_QUEUE_NAME_MAP",
    "RATES/Ethernet*": "COUNTERS_PORT_NAME_MAP",
    "PERIODIC_WATERMARKS/Ethernet*/PriorityGroups": "COUNTERS_PG_NAME_MAP",
}


def aliased(name: str, databases: Databases) -> str:
    """A port, or a part of a port, by the vendor's alias."""
    port, colon, rest = name.partition(":")
    return databases["CONFIG_DB"].get(f"PORT|{port}", {}).get("alias", port) + colon + rest


def virtual(path: str, databases: Databases) -> dict[str, Any]:
    """The objects of all ports. Those without fields are left out."""
    counters = databases["COUNTERS_DB"]
    table = path.partition("/")[0]
    found: dict[str, Any] = {}
    for name, oid in counters.get(PATHS[path], {}).items():
        found[aliased(name, databases)] = counters.get(f"{table}:{oid}", {})
        periodic = counters.get(f"PERIODIC_WATERMARKS:{oid}", {})
        if path.endswith("/Queues") and WATERMARK in periodic:
            found[f"{aliased(name, databases)}:periodic"] = {WATERMARK: periodic[WATERMARK]}
    watched = path.endswith("/Pfcwd")
    return {
        name: fields
        for name, fields in found.items()
        if fields and (not watched or "PFC_WD_STATUS" in fields)
    }


def table_or_key(target: str, path: str, databases: Databases) -> Any:
    """A whole table, one of its rows, or one field of a table that is a single hash."""
    hashes, separator = databases[target], SEPARATORS[target]
    table, _, key = path.partition("/")
    if not key:
        if target == "COUNTERS_DB" and table != "COUNTERS":
            return hashes.get(table, {})
        rows = {name.partition(separator): fields for name, fields in hashes.items()}
        return {parts[2]: fields for parts, fields in rows.items() if parts[0] == table and parts[1]}
    if table == "COUNTERS" and (oid := hashes["COUNTERS_PORT_NAME_MAP"].get(key)):
        return hashes[f"COUNTERS:{oid}"]
    if (whole := f"{table}{separator}{key}") in hashes:
        return hashes[whole]
    if key in hashes.get(table, {}):
        return hashes[table][key]
    raise RefusedError(grpc.StatusCode.NOT_FOUND, f"No valid entry found on {target} with key {whole}")


def reply(asked: GnmiQuestion, databases: Databases) -> bytes:
    """The reply to a Get. The server orders paths at random, here backwards."""
    updates = []
    for path in reversed(asked.paths):
        value = virtual(path, databases) if path in PATHS else table_or_key(asked.target, path, databases)
        updates.append((path_of(path), {"string_val": value} if isinstance(value, str) else ietf(value)))
    return get_response(*updates)
