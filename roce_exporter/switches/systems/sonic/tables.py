"""The tables of one SONiC switch by the names of its ports, as gNMI and Redis have them.

Object identifiers of SAI are gone here: they change with every restart of SONiC's services. Layout of the databases:
sonic-swss-common `common/schema.h`, fields of the counters: SAI `saiport.h`, `saiqueue.h`, `saibuffer.h`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from roce_exporter.catalog.switch_systems import SONIC
from roce_exporter.switches.reply_values import readers
from roce_exporter.switches.systems import table_of

Fields = dict[str, str]
"""One hash of SONiC: texts by the name of the field. A field that the switch does not have is absent."""

PORT_COUNTERS, QUEUE_COUNTERS, GROUP_COUNTERS = "port_counters", "queue_counters", "priority_group_counters"
VOQ_COUNTERS, WATERMARKS, CONFIGURATION, STATE = "voq_counters", "watermarks", "configuration", "state"
LLDP, LINKS, TRANSCEIVERS = "lldp", "links", "transceivers"
COUNTED = (PORT_COUNTERS, QUEUE_COUNTERS, GROUP_COUNTERS, WATERMARKS)
SOURCES = (*COUNTED, CONFIGURATION, STATE, LLDP, LINKS, TRANSCEIVERS)
"""Each is one field of `SonicTables`, and fails on its own: the keys of `Replies.faults`. Only a chassis has `VOQ_COUNTERS`, too."""

QUEUE_TYPE, UNICAST, EVERY_TYPE = "SAI_QUEUE_TYPE_", "UNICAST", "ALL"

FIELD_CHARACTERS = 1024
"""Most characters of one value that are kept. The longest honest one is the system description of LLDP."""

INTERNAL_PORT = re.compile(r"Ethernet-|PortChannel|Loopback|Vlan|CPU|Fabric|eth[0-9]|mgmt", re.ASCII)
"""Ports between the ASICs of one switch (Ethernet-BP, -IB, -Rec), and names that are no port of a front panel."""

PORT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_./-]{0,63}", re.ASCII)

INDEX = re.compile(r"[0-9]{1,5}", re.ASCII)

RANGE = re.compile(r"([0-9]{1,3})(?:-([0-9]{1,3}))?", re.ASCII)
UNSET = frozenset({"", "NULL", "null", "None"})
"""How a reference says that it refers to nothing; `NULL` in a dynamic buffer model, which then chooses the profile."""
NOTHING: Fields = {}
PRIORITY = "{priority}"
OVERRIDE = "BIG_RED_SWITCH_MODE"
"""A field of a queue that is present while the watchdog of the whole switch is overridden."""
WATCHDOG_STATUS = "PFC_WD_STATUS"
FLEX_GROUPS, CAPABILITIES = table_of("sonic groups"), table_of("sonic capabilities")
"""The source of each group of counters, and the row that says whether the ASIC has a field."""


class SonicQueue(NamedTuple):
    """A queue by the index that COUNTERS_QUEUE_INDEX_MAP has, which is unique only among the queues of one type."""

    port: str
    number: int
    type: str = UNICAST
    """`UNICAST`, `MULTICAST`, `ALL` or `UNICAST_VOQ`: the type in COUNTERS_QUEUE_TYPE_MAP without its prefix."""


class SonicGroup(NamedTuple):
    """An ingress priority group."""

    port: str
    number: int


class SonicVoq(NamedTuple):
    """A virtual output queue of a chassis: packets of this line card for a port of any line card wait in it."""

    device: str
    """The host name of the line card with the port."""
    port: str
    number: int


@dataclass(frozen=True, slots=True)
class SonicWatermarks:
    """One window's maxima. All three mappings hold what the reply had; an object without a watermark is absent."""

    queues: Mapping[SonicQueue, Fields]
    groups: Mapping[SonicGroup, Fields]
    pools: Mapping[str, Fields]


@dataclass(frozen=True, slots=True)
class SonicTables:
    """The tables of one namespace: of the switch, or of one of its ASICs.

    None: this source was not queried, or failed (then `Replies.faults` has it). An empty mapping: it was queried, and
    holds nothing. An object with empty fields: it has a name, and no counters (SONiC's services restart).
    """

    namespace: str = ""
    """`asic0`; empty on a switch of one ASIC, and for the host's own databases."""
    port_counters: Mapping[str, Fields] | None = None
    """`COUNTERS:<oid>` by port name (not alias)."""
    queue_counters: Mapping[SonicQueue, Fields] | None = None
    priority_group_counters: Mapping[SonicGroup, Fields] | None = None
    voq_counters: Mapping[SonicVoq, Fields] | None = None
    watermarks: Mapping[str, SonicWatermarks] | None = None
    """By window; a window that was not queried is absent."""
    configuration: Mapping[str, Fields] | None = None
    """Rows of CONFIG_DB by whole key: `PFC_WD|Ethernet0`. Rows that do not exist are absent.

    And those of APPL_DB that hold what a dynamic buffer model decided: `BUFFER_PG_TABLE:Ethernet0:3-4`.
    """
    state: Mapping[str, Fields] | None = None
    """Rows of STATE_DB by whole key: `BUFFER_POOL_TABLE|ingress_lossless_pool`, `QUEUE_COUNTER_CAPABILITIES|...`."""
    lldp: Mapping[str, Fields] | None = None
    """Rows of APPL_DB by whole key: `LLDP_ENTRY_TABLE:Ethernet0`, `LLDP_LOC_CHASSIS`."""
    links: Mapping[str, Fields] | None = None
    """By port the fields of PORT_TABLE in APPL_DB, PORT_OPERR_TABLE in STATE_DB and RATES in COUNTERS_DB."""
    transceivers: Mapping[str, Fields] | None = None
    """By port the fields of the tables TRANSCEIVER_DOM_SENSOR, _DOM_THRESHOLD and _INFO in STATE_DB."""


@lru_cache(maxsize=4096)
def is_front_panel(port: str) -> bool:
    """Whether the port leads out of the switch. LAGs are not: their member ports are reported."""
    return PORT_NAME.fullmatch(port) is not None and INTERNAL_PORT.match(port) is None


def fields_of(value: object) -> Fields:
    """A hash as a decoded reply (JSON, RESP) has it; what is no mapping has no fields.

    A value that is neither text nor a number stays as a text that is no number, so that it is reported as unreadable
    and not as absent.
    """
    if not isinstance(value, dict):
        return {}
    return {str(name): str(text)[:FIELD_CHARACTERS] for name, text in value.items() if text is not None}


def members(names: Fields, indexes: Fields = NOTHING) -> Iterator[tuple[str, str, int]]:
    """Object identifier, port and index of each object in a name map such as COUNTERS_QUEUE_NAME_MAP, without internal ports.

    The number in the name (`Ethernet0:13`) counts unicast, then multicast queues, so the index comes from COUNTERS_QUEUE_INDEX_MAP;
    without it, the number is the index.
    """
    for name, oid in names.items():
        port, _, number = name.rpartition(":")
        index = indexes.get(oid, number)
        if is_front_panel(port.rpartition("|")[2]) and INDEX.fullmatch(index):
            yield oid, port, int(index)


@dataclass(frozen=True, slots=True)
class SonicRows:
    """The rows of one namespace. Tables with names of their own (profiles, pools, maps) stay in `named`, by whole key."""

    ports: dict[str, Fields] = field(default_factory=dict)
    qos: dict[str, Fields] = field(default_factory=dict)
    """PORT_QOS_MAP by port."""
    watchdogs: dict[str, Fields] = field(default_factory=dict)
    """PFC_WD by port; `GLOBAL` is in `named`."""
    queues: dict[tuple[str, int], Fields] = field(default_factory=dict)
    """QUEUE by port and queue."""
    groups: dict[tuple[str, int], Fields] = field(default_factory=dict)
    """BUFFER_PG by port and priority group."""
    chosen_groups: dict[tuple[str, int], Fields] = field(default_factory=dict)
    """BUFFER_PG_TABLE of APPL_DB: the profile that a dynamic buffer model has chosen."""
    named: dict[str, Fields] = field(default_factory=dict)

    def get(self, key: str) -> Fields:
        """The row of a table with names of its own; empty if there is no such row."""
        return self.named.get(key, NOTHING)


def rows_of(configuration: Mapping[str, Fields]) -> SonicRows:
    """The rows by object. A key can list ports and have a range: `QUEUE|Ethernet0,Ethernet4|3-4`.

    On a chassis with virtual output queues, keys of QUEUE begin with a line card and an ASIC; those of others are left out.
    """
    rows, own = SonicRows(), voq_prefix(configuration)
    of_port = {"PORT": rows.ports, "PORT_QOS_MAP": rows.qos, "PFC_WD": rows.watchdogs}
    of_number = {"QUEUE": rows.queues, "BUFFER_PG": rows.groups, "BUFFER_PG_TABLE": rows.chosen_groups}
    for key, fields in configuration.items():
        table, separator, rest = key.partition(":" if key.startswith("BUFFER_PG_TABLE:") else "|")
        if table in of_port and rest != "GLOBAL":
            of_port[table].update(dict.fromkeys(rest.split(","), fields))
        elif table in of_number:
            ports, _, numbers = rest.rpartition(separator)
            if table == "QUEUE" and own:
                ports = ports.removeprefix(own) if ports.startswith(own) else ""
            for number in numbers_of(numbers) if ports else ():
                of_number[table].update({(port, number): fields for port in ports.split(",")})
        else:
            rows.named[key] = fields
    return rows


def voq_prefix(configuration: Mapping[str, Fields]) -> str:
    """What precedes the port in the keys of QUEUE: `sonic-lc1|asic0|` on a chassis with virtual output queues, else nothing."""
    row = configuration.get("DEVICE_METADATA|localhost", NOTHING)
    if row.get("switch_type") != "voq":
        return ""
    return f"{row.get('hostname', '')}|{row.get('asic_name') or 'asic0'}|"


def numbers_of(text: str) -> range:
    """The queues or priority groups of a key: `3` or `3-4`; empty if it is neither."""
    found = RANGE.fullmatch(text)
    if found is None:
        return range(0)
    first = int(found[1])
    return range(first, int(found[2] or first) + 1)


def ranges_with(numbers: frozenset[int]) -> Iterator[str]:
    """Every way in which a key can include one of the numbers: `3`, `4`, `0-3`, ..., `3-4`, ..., `4-7`."""
    last = max((7, *numbers))
    for first in range(last + 1):
        for end in range(first, last + 1):
            if not numbers.isdisjoint(range(first, end + 1)):
                yield str(first) if first == end else f"{first}-{end}"


def reference(text: str | None) -> str:
    """The name in a reference to a row: `[WRED_PROFILE|name]` until SONiC 202012, `name` since; empty if unset."""
    name = (text or "").strip()
    if name.startswith("[") and name.endswith("]"):
        name = re.split(r"[|:]", name[1:-1], maxsplit=1)[-1]
    return "" if name in UNSET else name


def raw(source: str, start: str = "") -> tuple[str, ...]:
    """The raw names that the catalogue has of a source, those that begin so."""
    return tuple(name for name in readers(SONIC, source) if name.startswith(start))


PRIORITY_FIELDS = tuple(name for name in raw(PORT_COUNTERS) if PRIORITY in name)
PORT_FIELDS = tuple(name for name in raw(PORT_COUNTERS) if PRIORITY not in name)
QUEUE_FIELDS = raw(QUEUE_COUNTERS)


RATE_FIELDS = ("FEC_PRE_BER", "FEC_POST_BER")
NEIGHBOR = ("sys_name", "chassis_id", "port_id", "port_id_subtype", "port_desc")
LIMIT_FIELDS = ("rxpowerlowalarm", "temphighalarm")
SENSOR_FIELDS = tuple(name for name in raw(TRANSCEIVERS) if name not in LIMIT_FIELDS)
MODULE_FIELDS = ("type", "manufacturer", "model")


class CountedObjects(NamedTuple):
    """One kind of objects in COUNTERS_DB, each of which has a hash."""

    source: str
    kind: str
    """The attribute that has them: of `SonicNames`, and with watermarks of `SonicWatermarks`."""
    fields: tuple[str, ...]
    group: str = ""
    """The group of counters without which their numbers are old; empty: it depends on the field."""


COUNTERS = (
    CountedObjects(PORT_COUNTERS, "ports", PORT_FIELDS, "PORT"),
    CountedObjects(QUEUE_COUNTERS, "queues", QUEUE_FIELDS),
    CountedObjects(GROUP_COUNTERS, "groups", raw(GROUP_COUNTERS), "PG_DROP"),
    CountedObjects(VOQ_COUNTERS, "voqs", raw(VOQ_COUNTERS)),
)
MAXIMA = (
    CountedObjects(WATERMARKS, "queues", raw(WATERMARKS, "SAI_QUEUE_"), "QUEUE_WATERMARK"),
    CountedObjects(WATERMARKS, "groups", raw(WATERMARKS, "SAI_INGRESS_"), "PG_WATERMARK"),
    CountedObjects(WATERMARKS, "pools", raw(WATERMARKS, "SAI_BUFFER_POOL_"), "BUFFER_POOL_WATERMARK"),
)
"""In the order of the fields of `SonicWatermarks`; a 0 of a group that is off is no zero."""


def flex_group(name: str) -> str:
    """The group of counters that a field of a queue belongs to; empty for those of the watchdog, which polls itself."""
    if name.startswith("SAI_QUEUE_STAT_WRED_"):
        return "WRED_ECN_QUEUE"
    if name == "SAI_QUEUE_STAT_CURR_OCCUPANCY_BYTES" or not name.startswith("SAI_QUEUE_STAT_"):
        return ""
    return "QUEUE"


def port_fields(priorities: Iterable[int]) -> tuple[str, ...]:
    """The fields of a port for these priorities, as SONiC spells them."""
    numbers = sorted(priorities)
    return (
        *PORT_FIELDS,
        *(name.replace(PRIORITY, str(priority)) for priority in numbers for name in PRIORITY_FIELDS),
    )
