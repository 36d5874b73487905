"""The tables of one SONiC switch by the names of its ports, as both doors to SONiC produce them.

Object identifiers of SAI are gone here: they change with every restart of SONiC's services. Layout of the databases:
sonic-swss-common `common/schema.h`, fields of the counters: SAI `saiport.h`, `saiqueue.h`, `saibuffer.h`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

Fields = dict[str, str]
"""One hash of SONiC: texts by the name of the field. A field that the switch does not have is absent."""

PORT_COUNTERS = "port_counters"
QUEUE_COUNTERS = "queue_counters"
GROUP_COUNTERS = "priority_group_counters"
WATERMARKS = "watermarks"
CONFIGURATION = "configuration"
STATE = "state"
LLDP = "lldp"

SOURCES = (PORT_COUNTERS, QUEUE_COUNTERS, GROUP_COUNTERS, WATERMARKS, CONFIGURATION, STATE, LLDP)
"""Each is one field of `SonicTables`, and fails on its own: the keys of `Replies.faults`."""

WATERMARK_WINDOWS = ("user", "persistent", "periodic")
"""The tables USER_WATERMARKS, PERSISTENT_WATERMARKS and PERIODIC_WATERMARKS."""

QUEUE_TYPE = "SAI_QUEUE_TYPE_"
UNICAST = "UNICAST"
EVERY_TYPE = "ALL"

FIELD_CHARACTERS = 1024
"""Most characters of one value that are kept. The longest honest one is the system description of LLDP."""

INTERNAL_PORT = re.compile(r"Ethernet-|PortChannel|Loopback|Vlan|CPU|Fabric|eth[0-9]|mgmt", re.ASCII)
"""Ports between the ASICs of one switch (Ethernet-BP, -IB, -Rec), and names that are no port of a front panel."""

PORT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_./-]{0,63}", re.ASCII)

INDEX = re.compile(r"[0-9]{1,5}", re.ASCII)


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


def queue_objects(names: Fields, indexes: Fields, types: Fields) -> dict[str, SonicQueue]:
    """The queues in COUNTERS_QUEUE_NAME_MAP by their object identifier, without those of internal ports.

    The number in the name (`Ethernet0:13`) counts unicast, then multicast queues, so index and type come from
    COUNTERS_QUEUE_INDEX_MAP and COUNTERS_QUEUE_TYPE_MAP. Without them, the number is the index of a unicast queue.
    """
    found = {}
    for name, oid in names.items():
        port, _, number = name.rpartition(":")
        index = indexes.get(oid, number)
        if is_front_panel(port) and INDEX.fullmatch(index):
            kind = types.get(oid, "").removeprefix(QUEUE_TYPE)
            found[oid] = SonicQueue(port, int(index), kind or UNICAST)
    return found


def group_objects(names: Fields, indexes: Fields) -> dict[str, SonicGroup]:
    """The priority groups in COUNTERS_PG_NAME_MAP by their object identifier, without those of internal ports."""
    found = {}
    for name, oid in names.items():
        port, _, number = name.rpartition(":")
        index = indexes.get(oid, number)
        if is_front_panel(port) and INDEX.fullmatch(index):
            found[oid] = SonicGroup(port, int(index))
    return found
