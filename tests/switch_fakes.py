"""A switch that exists in the test only."""

import asyncio
from dataclasses import dataclass, field, replace

from roce_exporter.switches.probe import Prober
from roce_exporter.switches.readings import (
    LoggedRequest,
    ProbeReply,
    ProbeRequest,
    SwitchReading,
    SwitchReadings,
)
from roce_exporter.switches.targets import ProbeLimits, SwitchesFile, SwitchTarget

RAW = "SAI_PORT_STAT_PFC_3_RX_PKTS"


@dataclass
class FakeSwitch:
    """A module that answers when `gate` is open, with the number of rounds so far."""

    rounds: int = 0
    at_once: int = 0
    most_at_once: int = 0
    visits: list[ProbeRequest] = field(default_factory=list)
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    faults: dict[str, str] = field(default_factory=dict)

    async def query(self, visit: ProbeRequest) -> ProbeReply:
        self.rounds += 1
        self.entered.set()
        self.visits.append(visit)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.gate.wait()
        finally:
            self.at_once -= 1
        seen = (LoggedRequest("port_counters", "HMGET", visit.login.password),) if visit.record else ()
        return ProbeReply({"port_counters": self.rounds}, dict(self.faults), seen)

    def read(self, replies: ProbeReply, _: SwitchTarget) -> SwitchReadings:
        reading = SwitchReading(
            "port_counters", (("port", "Ethernet0"),), {RAW: replies.replies["port_counters"]}
        )
        return SwitchReadings("leaf1.example.com", (reading,), sources=("port_counters", "lldp"))


def leaf(name: str = "leaf1", **settings: object) -> SwitchTarget:
    return replace(SwitchTarget(name, "sonic", "redis", "192.0.2.1", {"redis": 6379}), **settings)  # type: ignore[arg-type]


def prober(*targets: SwitchTarget, limits: ProbeLimits = ProbeLimits()) -> Prober:  # noqa: B008 - frozen
    return Prober(SwitchesFile({one.name: one for one in targets or (leaf(),)}, (), limits))
