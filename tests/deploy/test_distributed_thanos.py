"""Agents, three receivers, querier, rulers, store gateway and compactor, with the files of deploy/prometheus/thanos: a receiver is killed in a storm.

Thanos is no package of Debian. The tests run where `thanos` is on the PATH; docs/operating.md has the version that was tested.
"""

from __future__ import annotations

import json
import shutil
import time
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest
from deploy_agents import agent
from deploy_storm import (
    FIRST,
    SECOND,
    Clusters,
    Process,
    all_ready,
    hasty_rules,
    placed,
    scene,
    storm_alerts,
)
from deploy_tools import DEPLOY, wait_until
from ports import free_port

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.nightly

FOLDER = DEPLOY / "prometheus/thanos"
RECEIVERS = tuple(f"receive-{number}" for number in range(3))
RULERS = ("rule-0", "rule-1")
HASTE = {
    "rule": {"eval-interval=15s": "eval-interval=10s"},
    "query": {"response-timeout=5s": "response-timeout=60s"},  # the test may run on a busy machine
    "store": {"sync-block-duration=3m": "sync-block-duration=1s"},
    "compact": {"wait-interval=5m": "wait-interval=1s", "consistency-delay=30m": "consistency-delay=0s"},
}
HOSTS = 3
REPLICAS = {"replica", "receive_replica", "rule_replica"}


@pytest.fixture(scope="module")
def thanos() -> str:
    """The program; it is optional in CI too."""
    found = shutil.which("thanos")
    if not found:
        pytest.skip("thanos is not on the PATH; Debian has no package of it")
    return found


@dataclass(frozen=True)
class Site:
    """A folder with the shipped files, in which each server has its own addresses."""

    thanos: str
    folder: Path
    alertmanager: str
    grpc: Mapping[str, int]
    http: Mapping[str, int]
    write: Mapping[str, int]

    @classmethod
    def made(cls, thanos: str, folder: Path, alertmanager: str) -> Site:
        """The site, with our rules and the files that several servers read."""
        names = (*RECEIVERS, "query", *RULERS, "store", "compact")
        ports = [{name: free_port() for name in names} for _ in range(3)]
        site = cls(thanos, folder, alertmanager, *ports)
        (folder / "bucket").mkdir()
        bucket = placed((FOLDER / "bucket.yml").read_text(), {"/var/lib/thanos": str(folder)})
        (folder / "bucket.yml").write_text(bucket)
        for name, members in (
            ("hashrings.json", RECEIVERS),
            ("endpoints.yml", (*RECEIVERS, *RULERS, "store")),
        ):
            places = {f"{member}:10901": f"127.0.0.1:{site.grpc[member]}" for member in members}
            (folder / name).write_text(placed((FOLDER / name).read_text(), places))
        hasty_rules(folder)
        return site

    def server(self, action: str, name: str) -> Process:
        """A server with its file of flags."""
        first = f"{action}-0"
        text = (FOLDER / f"{action}.flags").read_text()
        places = {
            f"{first}:10901": f"127.0.0.1:{self.grpc[name]}",
            first: name,
            "0.0.0.0:10901": f"127.0.0.1:{self.grpc[name]}",
            "0.0.0.0:10902": f"127.0.0.1:{self.http[name]}",
            "0.0.0.0:19291": f"127.0.0.1:{self.write[name]}",
            "0.0.0.0:19391": f"127.0.0.1:{free_port()}",
            "query:10902": f"127.0.0.1:{self.http['query']}",
            "http://alertmanager:9093": self.alertmanager,
            "/etc/thanos": str(self.folder),
            f"/var/lib/thanos/{action}": str(self.folder / name),
        }
        present = {shipped: here for shipped, here in places.items() if shipped in text}
        path = self.folder / f"{name}.flags"
        path.write_text(placed(text, {**present, **HASTE.get(action, {})}))
        command = [self.thanos, action, f"@{path}"]
        return Process(command, self.http[name], self.folder / f"{name}.log")

    def agent(self, cluster: str, replica: str, receiver: str, clusters: Clusters) -> Process:
        """An agent that writes to a receiver."""
        own = self.folder / f"agent-{cluster}-{replica}"
        address = ("receive:19291", f"127.0.0.1:{self.write[receiver]}")
        return agent(FOLDER / "agent.yml", own, replica, cluster, clusters=clusters, store=address)

    def samples(self, query: Process, selector: str, at: float, **parameters: str) -> list[dict[str, Any]]:
        """The vector that the querier returns."""
        asked = {"query": selector, "time": f"{at:.3f}", "partial_response": "false", **parameters}
        return query.server.ask("/api/v1/query", **asked)["result"]

    def hosts_up(self, query: Process, at: float, **parameters: str) -> dict[str, str]:
        """The sample `up` of each host."""
        found = self.samples(query, 'up{job="roce"}', at, **parameters)
        return {one["metric"]["instance"]: one["value"][1] for one in found}

    def blocks(self) -> list[dict[str, Any]]:
        """The metadata of all blocks in the bucket; a file that is being written is still empty."""
        texts = [path.read_text() for path in (self.folder / "bucket").glob("*/meta.json")]
        return [json.loads(text) for text in texts if text]


def healthy_stores(query: Process) -> int:
    """How many servers the querier reads without an error."""
    told = query.server.ask("/api/v1/stores")
    return sum(not one["lastError"] for one in chain.from_iterable(told.values()))


@pytest.mark.timeout(3600)  # the alerts of both storms must end, on a machine that may be busy
def test_a_receiver_that_is_killed_in_a_storm_loses_no_page_and_sends_none_twice(
    tmp_path: Path, thanos: str
) -> None:
    """One storm is paged before the receiver is killed, another while it is away. Afterwards the history is compacted."""
    with scene(tmp_path) as storms, ExitStack() as stack:
        site = Site.made(thanos, tmp_path, storms.alertmanager.url)
        receivers = [site.server("receive", name) for name in RECEIVERS]
        query, store = site.server("query", "query"), site.server("store", "store")
        rulers = [site.server("rule", name) for name in RULERS]
        agents = [
            site.agent(cluster, replica, receiver, storms.clusters)
            for cluster in (FIRST, SECOND)
            for replica, receiver in (("a", RECEIVERS[0]), ("b", RECEIVERS[1]))
        ]
        stack.enter_context(all_ready(*receivers, query, store))
        stack.enter_context(all_ready(*agents, *rulers))
        storms.clusters.start_storm(FIRST)
        storms.page(FIRST, "firing")
        killed = time.time()
        receivers[0].kill()
        storms.clusters.start_storm(SECOND)
        storms.page(SECOND, "firing")
        back = time.time()
        receivers[0].start()
        receivers[0].wait()

        storms.end(lambda: any(map(storm_alerts, rulers)))
        wait_until(lambda: healthy_stores(query) == len((*RECEIVERS, *RULERS, "store")), "all stores")
        check_deduplication(site, query, [killed - 2, (killed + back) / 2, back])
        check_delivery(site, query, killed, back)
        check_history(site, stack, receivers, query, (killed + back) / 2)


def without_replicas(sample: dict[str, Any]) -> frozenset[tuple[str, str]]:
    return frozenset((key, value) for key, value in sample["metric"].items() if key not in REPLICAS)


def check_deduplication(site: Site, query: Process, times: list[float]) -> None:
    """Of the copies of a series one is returned, with a value that a replica has."""
    selector = '{__name__=~"roce_.+",instance="fabric-a-quiet"}'
    for at in times:
        copies: dict[frozenset[tuple[str, str]], set[str]] = {}
        replicas: set[str] = set()
        for sample in site.samples(query, selector, at, dedup="false"):
            copies.setdefault(without_replicas(sample), set()).add(sample["value"][1])
            replicas.add(sample["metric"]["replica"])
        kept = site.samples(query, selector, at, dedup="true")
        assert replicas == {"a", "b"}, f"{at}: samples of {replicas} only"
        assert len(kept) == len(copies) > 100
        for sample in kept:
            labels = frozenset(sample["metric"].items())
            assert sample["value"][1] in copies[labels], f"{labels} has a value of no replica"
            assert ("tenant_id", "fabric-a") in labels


def check_delivery(site: Site, query: Process, killed: float, back: float) -> None:
    """What each agent scraped while a receiver was away is on two receivers or more, also from the agent that had to wait."""
    selector = f'count_over_time(up{{instance="{FIRST}-quiet"}}[{int(back - killed)}s])'
    copies = site.samples(query, selector, back, dedup="false")
    for replica in ("a", "b"):
        found = {one["metric"]["receive_replica"] for one in copies if one["metric"]["replica"] == replica}
        assert len(found) >= 2, f"samples of agent {replica} are on {found} only"


def check_history(site: Site, stack: ExitStack, receivers: list[Process], query: Process, at: float) -> None:
    """What the receivers upload when they end is served by the store gateway, and is compacted to one copy per tenant."""
    before = site.hosts_up(query, at)
    assert len(before) == HOSTS
    for receiver in receivers:
        receiver.stop()
    only_store = {"storeMatch[]": f'{{__address__="127.0.0.1:{site.grpc["store"]}"}}'}
    wait_until(
        lambda: site.hosts_up(query, at, **only_store) == before, "the store gateway serves the blocks"
    )
    raw = site.blocks()
    assert {(block["thanos"]["labels"]["tenant_id"], copy_of(block)) for block in raw} == {
        (tenant, receiver) for tenant in (FIRST, SECOND) for receiver in RECEIVERS
    }

    def compacted() -> bool:
        merged = [block for block in site.blocks() if copy_of(block) is None]
        sources = {source for block in merged for source in block["compaction"]["sources"]}
        return sources == {block["ulid"] for block in raw}

    compactor = site.server("compact", "compact")
    stack.enter_context(all_ready(compactor))
    wait_until(compacted, "the three copies of each block are one block")
    compactor.kill()  # it would write marks into the folders that are removed now
    for block in raw:
        shutil.rmtree(site.folder / "bucket" / block["ulid"])
    wait_until(
        lambda: site.hosts_up(query, at, **only_store) == before,
        "the store gateway serves the compacted blocks",
    )


def copy_of(block: dict[str, Any]) -> str | None:
    """The receiver that uploaded a block; the compactor removes this label when it merges blocks."""
    return block["thanos"]["labels"].get("receive_replica")
