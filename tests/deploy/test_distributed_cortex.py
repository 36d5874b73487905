"""Agents, three ingesters, two servers that distribute, query and rule, and a store gateway, with the files of deploy/prometheus/cortex: an ingester is killed in a storm.

Cortex is no package of Debian. The tests run where `cortex` is on the PATH; docs/operating.md has the version that was tested.
"""

from __future__ import annotations

import json
import shutil
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from deploy_agents import agent
from deploy_storm import (
    FIRST,
    SECOND,
    STORM,
    Clusters,
    Process,
    all_ready,
    hasty_rules,
    placed,
    scene,
)
from deploy_tools import DEPLOY, fetch
from ports import free_port

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.nightly

FOLDER = DEPLOY / "prometheus/cortex"
INGESTERS = tuple(f"ingester-{number}" for number in range(3))
FRONTS = ("front-0", "front-1")
TARGETS = {
    **dict.fromkeys(INGESTERS, "ingester"),
    **dict.fromkeys(FRONTS, "distributor,querier,ruler"),
    "back": "store-gateway,compactor",
}
RINGS = ("ruler.ring", "store-gateway.sharding-ring")
TENANTS = {FIRST: {f"{FIRST}-storm", f"{FIRST}-quiet"}, SECOND: {f"{SECOND}-storm"}}
"""The hosts of each tenant."""


@pytest.fixture(scope="module")
def cortex() -> str:
    """The program; it is optional in CI too."""
    found = shutil.which("cortex")
    if not found:
        pytest.skip("cortex is not on the PATH; Debian has no package of it")
    return found


@dataclass(frozen=True)
class Site:
    """A folder with the shipped file, in which each server has its own addresses and folders."""

    cortex: str
    folder: Path
    alertmanager: str
    gossip: Mapping[str, int]

    @classmethod
    def made(cls, cortex: str, folder: Path, alertmanager: str) -> Site:
        """The site, with our rules for each tenant."""
        rules = hasty_rules(folder)
        for tenant in TENANTS:
            shutil.copytree(rules, folder / "tenants" / tenant)
        return cls(cortex, folder, alertmanager, {name: free_port() for name in TARGETS})

    def server(self, name: str) -> Process:
        """A server of Cortex with the shipped file."""
        places = {
            **{f"{member}:7946": f"127.0.0.1:{self.gossip[member]}" for member in INGESTERS},
            "/var/lib/cortex/blocks": str(self.folder / "blocks"),
            "/var/lib/cortex": str(self.folder / name),
            "/etc/cortex/rules": str(self.folder / "tenants"),
            "http://alertmanager:9093": self.alertmanager,
            "evaluation_interval: 15s": "evaluation_interval: 10s",
            "poll_interval: 15s": "poll_interval: 2s",
        }
        path = self.folder / f"{name}.yml"
        path.write_text(placed((FOLDER / "cortex.yml").read_text(), places))
        (self.folder / name).mkdir()
        http, grpc = free_port(), free_port()
        command = [
            self.cortex,
            f"-config.file={path}",
            f"-target={TARGETS[name]}",
            "-server.http-listen-address=127.0.0.1",
            f"-server.http-listen-port={http}",
            "-server.grpc-listen-address=127.0.0.1",
            f"-server.grpc-listen-port={grpc}",
            "-memberlist.bind-addr=127.0.0.1",
            f"-memberlist.bind-port={self.gossip[name]}",
            "-memberlist.advertise-addr=127.0.0.1",
            f"-memberlist.advertise-port={self.gossip[name]}",
            "-ingester.lifecycler.addr=127.0.0.1",
            # On a busy machine live ingesters are late; the killed one refuses connections at once.
            "-ring.heartbeat-timeout=10m",
            "-distributor.remote-timeout=30s",
            f"-ingester.lifecycler.ID={name}",
            *(
                flag
                for ring in RINGS
                for flag in (f"-{ring}.instance-addr=127.0.0.1", f"-{ring}.instance-id={name}")
            ),
        ]
        return Process(command, http, self.folder / f"{name}.log", "/ready")

    def agent(self, cluster: str, replica: str, front: Process, clusters: Clusters) -> Process:
        """An agent that writes to a distributor."""
        own = self.folder / f"agent-{cluster}-{replica}"
        address = ("cortex:8080", f"127.0.0.1:{front.port}")
        return agent(FOLDER / "agent.yml", own, replica, cluster, clusters=clusters, store=address)


def read(front: Process, tenant: str, path: str, **parameters: str) -> Any:
    """The `data` of a reply to a tenant.

    Raises:
        OSError: no reply, or an error.
    """
    request = urllib.request.Request(
        f"{front.server.url}/prometheus/api/v1/{path}?{urlencode(parameters)}",
        headers={"X-Scope-OrgID": tenant},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["data"]


def storm_in(front: Process) -> bool:
    """Whether a ruler considers a storm of any tenant active."""
    return any(
        alert["labels"]["alertname"] == STORM
        for tenant in TENANTS
        for alert in read(front, tenant, "alerts")["alerts"]
    )


def samples(front: Process, tenant: str, selector: str, at: float) -> list[dict[str, Any]]:
    """The vector that a querier returns to a tenant."""
    found: list[dict[str, Any]] = read(front, tenant, "query", query=selector, time=f"{at:.3f}")["result"]
    return found


@pytest.mark.timeout(3600)  # the alerts of both storms must end, on a machine that may be busy
def test_an_ingester_that_is_killed_in_a_storm_loses_no_page_and_sends_none_twice(
    tmp_path: Path, cortex: str
) -> None:
    """One storm is paged before the ingester is killed, another while it is away."""
    with scene(tmp_path) as storms, ExitStack() as stack:
        site = Site.made(cortex, tmp_path, storms.alertmanager.url)
        servers = {name: site.server(name) for name in TARGETS}
        fronts = [servers[name] for name in FRONTS]
        agents = [
            site.agent(cluster, replica, front, storms.clusters)
            for cluster in (FIRST, SECOND)
            for replica, front in zip(("a", "b"), fronts, strict=True)
        ]
        stack.enter_context(all_ready(*servers.values()))
        stack.enter_context(all_ready(*agents))
        storms.clusters.start_storm(FIRST)
        storms.page(FIRST, "firing")
        killed = time.time()
        ingester = servers[INGESTERS[0]]
        ingester.kill()
        storms.clusters.start_storm(SECOND)
        storms.page(SECOND, "firing")
        back = time.time()
        ingester.start()
        ingester.wait()

        storms.end(lambda: any(map(storm_in, fronts)))
        check_replication([servers[name] for name in INGESTERS])
        for front in fronts:
            check_tenants(front, killed, back)


def check_replication(ingesters: list[Process]) -> None:
    """Every ingester has series of both tenants."""
    for ingester in ingesters:
        lines = fetch(f"{ingester.server.url}/metrics").splitlines()
        assert f"cortex_ingester_memory_users {len(TENANTS)}" in lines, ingester.log


def check_tenants(front: Process, killed: float, back: float) -> None:
    """A tenant has one copy of its hosts' samples, those from before the kill and from while an ingester was away, and no host of another."""
    window = f"{int(back - killed)}s"
    for tenant, hosts in TENANTS.items():
        for selector in ("up", f"count_over_time(up[{window}])"):
            found = samples(front, tenant, selector, back)
            assert sorted(one["metric"]["instance"] for one in found) == sorted(hosts), (
                f"{tenant}: {selector}"
            )
            assert not any("replica" in one["metric"] for one in found)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        fetch(f"{front.server.url}/prometheus/api/v1/query?query=up")
