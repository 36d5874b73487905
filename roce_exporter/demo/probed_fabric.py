"""Probers of a simulated fabric in which one uplink of a rack loses packets: what counters of hosts never show.

The probers are those of `roce-exporter probe`, each with its own loopback address and metrics, and real UDP between them. Only the fabric
is simulated: a packet passes one of the uplinks of a rack by the hash of its addresses and ports, as switches choose equal paths, and what
the bad one loses is discarded on arrival, before the responder looks at it.
"""

import contextlib
import ipaddress
import secrets
import time
import zlib
from collections.abc import AsyncIterator
from itertools import count

from roce_exporter.demo.servers import HOST, ScrapeTarget, served
from roce_exporter.model import Device, Gid, Port
from roce_exporter.probe.guard import Guard
from roce_exporter.probe.plan import ProbeTarget
from roce_exporter.probe.service import ROCE_V2, ProbeService, ProbeSettings
from roce_exporter.probe.stamp import DEFAULT_PORT
from roce_exporter.web.application import Application, SampledSection, json_page

RACKS, HOSTS, UPLINKS = 3, 4, 2
BAD_RACK, BAD_UPLINK = "rack-2", 1
ONE_OF = 4  # the bad uplink loses one packet of this number


class _LossyFabric(Guard):
    """What arrives at one host: what the bad uplink loses is not there for its responder, and is counted nowhere."""

    def __init__(self, own: ProbeTarget, targets: tuple[ProbeTarget, ...]) -> None:
        super().__init__((), time.monotonic)
        self._own = own
        self._racks = {str(one.address): one.rack for one in targets}
        self._passed = count(1)

    def admit_address(self, address: str, port: int) -> bool:
        """See `Guard`."""
        flow = f"{address} {self._own.address} {port} {self._own.port}".encode()
        racks = {self._racks.get(address), self._own.rack}
        if len(racks) > 1 and BAD_RACK in racks and zlib.crc32(flow) % UPLINKS == BAD_UPLINK:
            return next(self._passed) % ONE_OF != 0 and super().admit_address(address, port)
        return super().admit_address(address, port)


class _FabricProber(ProbeService):
    """A host of the fabric."""

    def __init__(self, own: ProbeTarget, targets: tuple[ProbeTarget, ...]) -> None:
        async def read() -> tuple[ProbeTarget, ...]:
            return targets

        super().__init__(ProbeSettings(), read, time.monotonic)
        self._guard = _LossyFabric(own, targets)
        gid = Gid(0, ROCE_V2, "eth0", str(own.address))
        self.follow([Device("mlx5_0", "mlx5_core", "mlx5", ports=(Port(1, "Ethernet", gids=(gid,)),))])


def fabric_targets() -> tuple[ProbeTarget, ...]:
    """The hosts of all racks, the demo's own first, on loopback addresses that another demo has hardly chosen as well."""
    chosen = f"127.{1 + secrets.randbelow(254)}.{secrets.randbelow(255)}"
    return tuple(
        ProbeTarget(
            f"rack-{rack}",
            f"host-{rack}{host}" if rack + host else HOST,
            "0",
            ipaddress.ip_address(f"{chosen}.{1 + rack * HOSTS + host}"),
            DEFAULT_PORT,
        )
        for rack in range(RACKS)
        for host in range(HOSTS)
    )


@contextlib.asynccontextmanager
async def probed_fabric() -> AsyncIterator[tuple[ScrapeTarget, ...]]:
    """Probers that probe each other within the block, each with its metrics on a free port of loopback."""
    targets = fabric_targets()
    async with contextlib.AsyncExitStack() as stack:
        scraped = []
        for own in targets:
            prober = _FabricProber(own, targets)
            stack.callback(prober.close)
            page = json_page(
                "/debug/targets", lambda: [one.name for one in targets], "who is probed, as JSON"
            )
            endpoints = Application((SampledSection(f"Probes of {own.name}", page, prober.samples),))
            endpoints.ready = True
            address = await stack.enter_async_context(served(endpoints, prober.run()))
            scraped.append(ScrapeTarget(own.name, address))
        yield tuple(scraped)
