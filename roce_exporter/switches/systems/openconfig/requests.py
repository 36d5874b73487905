"""OpenConfig over gNMI, for switches of any vendor: Junos, SR Linux, Dell Enterprise SONiC, EOS and others.

Each source is one subscription with the mode ONCE, so that a model that a switch does not have (NOT_FOUND) costs nothing else. Paths have
the origin `openconfig`, which servers with models of their own require. PFC is in no model of OpenConfig, and so in no series: `eos` has
it for EOS, `sonic_gnmi` for SONiC. No switch was queried for this module; `docs/evidence.md` says what it was tested with.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from roce_exporter.catalog.switch_systems import OPENCONFIG
from roce_exporter.switches.gnmi import AbsentError, GnmiClient
from roce_exporter.switches.json_client import query_sources
from roce_exporter.switches.readings import Module
from roce_exporter.switches.systems.openconfig.read import read

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from roce_exporter.switches.readings import ProbeReply, ProbeRequest

PORT_PATHS = {
    "interfaces": ("interfaces/interface[name=*]/state",),
    "ethernet_state": ("interfaces/interface[name=*]/ethernet/state",),
    "optics": (
        "components/component[name=*]/transceiver",
        "components/component[name=*]/state/temperature/instant",
    ),
    "queues": ("qos/interfaces/interface[interface-id=*]/output/queues/queue[name=*]/state",),
    "ecn_profiles": ("qos/queue-management-profiles/queue-management-profile[name=*]/wred/uniform/state",),
    "lldp_gnmi": ("lldp/interfaces/interface[name=*]/neighbors/neighbor[id=*]/state",),
}
"""What is subscribed, once, per source."""
PATHS = {**PORT_PATHS, "system": ("system/state",)}


def subscriptions(
    client: GnmiClient, paths: Mapping[str, tuple[str, ...]], origin: str = ""
) -> dict[str, Callable[[], Awaitable[Any]]]:
    """By source what subscribes to its paths; it returns None if the switch does not have them."""

    async def request(source: str) -> Any:
        try:
            return await client.once(source, paths[source], origin)
        except AbsentError:
            return None

    return {source: partial(request, source) for source in paths}


def present(answered: ProbeReply, **more: Any) -> ProbeReply:
    """The reply without the sources that the switch does not have."""
    found = {source: reply for source, reply in answered.replies.items() if reply is not None}
    return replace(answered, replies=found, **more)


async def query(probe: ProbeRequest) -> ProbeReply:
    """Subscribe to all paths once, at the same time."""
    async with GnmiClient(probe) as client:
        answered = await query_sources(subscriptions(client, PATHS, OPENCONFIG))
        return present(answered, logged=tuple(client.logged))


MODULE = Module("openconfig", OPENCONFIG, query, read)
