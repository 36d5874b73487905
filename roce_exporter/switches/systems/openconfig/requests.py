"""OpenConfig over gNMI, for switches of any vendor: Junos, SR Linux, Dell Enterprise SONiC, EOS and others.

Each source is one subscription with the mode ONCE, so that a model that a switch does not have (NOT_FOUND) costs nothing else. Paths have
the origin `openconfig`, which servers with models of their own require. PFC is in no model of OpenConfig: Dell Enterprise SONiC (augmentation
openconfig-qos-ext of sonic-mgmt-framework) and SR Linux (srl_nokia-qos) have sources of their own, `eos` and `sonic_gnmi` have it for EOS and
SONiC. No switch was queried for this module; `docs/evidence.md` says what it was tested with.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from roce_exporter.catalog.switch_systems import OPENCONFIG
from roce_exporter.net.gnmi_messages import path_of, plain_name
from roce_exporter.switches.gnmi import UNKNOWN_MODEL, AbsentError, GnmiClient
from roce_exporter.switches.json_client import query_sources
from roce_exporter.switches.readings import Module, ProbeReply, ProbeRequest, StreamPlan
from roce_exporter.switches.stream import SwitchStream
from roce_exporter.switches.systems import requests_of
from roce_exporter.switches.systems.openconfig.read import read


def paths_of(system: str) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[tuple[str, float], ...]]]:
    """The paths of a section by source: those of a round, and those of a stream with their seconds."""
    once: dict[str, tuple[str, ...]] = {}
    streamed: dict[str, tuple[tuple[str, float], ...]] = {}
    for source, path, *ways in requests_of(system):
        if "once" in ways:
            once[source] = (*once.get(source, ()), path)
        if ways[-1] != "once":
            streamed[source] = (*streamed.get(source, ()), (path, float(ways[-1])))
    return once, streamed


PATHS, STREAMED = paths_of(OPENCONFIG)
VENDORS = {"pfc_dell": OPENCONFIG, "pfc_srlinux": "srl_nokia"}
"""The sources that one vendor alone has, with the origin of the model."""
PORT_PATHS = {source: paths for source, paths in PATHS.items() if source not in ("system", *VENDORS)}


def subscriptions(
    client: GnmiClient, paths: Mapping[str, tuple[str, ...]], origin: str = ""
) -> dict[str, Callable[[], Awaitable[Any]]]:
    """By source what subscribes to its paths; it returns None if the switch does not have them."""

    async def request(source: str) -> Any:
        try:
            if source not in VENDORS:
                return await client.once(source, paths[source], origin)
            found = await client.once(source, paths[source], VENDORS[source], UNKNOWN_MODEL)
            # Servers that do not know a path may send something else.
            wanted = [plain_name(step.name) for path in paths[source] for step in path_of(path)]
            names = ([plain_name(step.name) for step in leaf.path[: len(wanted)]] for leaf in found)
            own = [leaf for leaf, known in zip(found, names, strict=True) if known == wanted[: len(known)]]
            return tuple(own) or None
        except AbsentError:
            return None

    return {source: partial(request, source) for source in paths}


def plan_of(
    reply: ProbeReply,
    streamed: Mapping[str, Sequence[tuple[str, float]]] = MappingProxyType(STREAMED),
    origin: str = OPENCONFIG,
) -> StreamPlan:
    """What to subscribe to after a round that has queried everything. Models of another origin are queried meanwhile, where the switch has them."""
    known = {source: paths for source, paths in streamed.items() if source in reply.replies}
    absent = {*streamed, *VENDORS} - reply.replies.keys() - reply.faults.keys()
    return StreamPlan(known, tuple(absent), origin)


async def query(probe: ProbeRequest) -> ProbeReply:
    """Subscribe to all paths once, at the same time, that no stream holds."""
    async with GnmiClient(probe) as client:
        answered = await query_sources(subscriptions(client, PATHS, OPENCONFIG), held=probe.held)
        return replace(answered, logged=tuple(client.logged))


MODULE = Module("openconfig", OPENCONFIG, query, read, partial(SwitchStream, plan_of))
