"""Stores for more hosts than one Prometheus holds, with the files of deploy/prometheus: one server is killed in a storm.

Two clusters, two agents and two rulers for each store, an Alertmanager with our routes. One storm is paged before the kill, the other begins
while the server is away. Each is one page. docs/operating.md has the versions.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
import yaml
from deploy_servers import agent_flag
from deploy_tools import DEPLOY, ROOT, fetch, ran
from ports import free_port
from storm_scene import FIRST, LONG, SECOND, Process, Scene, all_ready, hasty_rules, placed, scene
from tools import need
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.nightly

SCRAPE = 2
QUIET = f"{FIRST}-quiet"


class VictoriaMetrics:
    """Two vmagents, a store, which is killed, and two vmalerts."""

    others_go_on = False

    def __init__(self, scene: Scene) -> None:
        self.folder, self.scene = scene.folder, scene
        rules = hasty_rules(scene.folder)
        checked = ran(need("vmalert"), "-dryRun", f"-rule={ROOT / 'alerts/roce.rules.yml'}")
        if checked.returncode:
            pytest.skip("vmalert is older than 1.91, as Debian 12's is: tests/newest.sh has a newer one")
        store = {
            "/var/lib/victoria-metrics": str(scene.folder / "store"),
            "minScrapeInterval=15s": f"minScrapeInterval={SCRAPE}s",
        }
        self.victim = self.server("victoria-metrics", store)
        self.shipped = {"http://victoria-metrics:8428": self.victim.server.url}
        places = {
            "/etc/vmalert/rules": str(rules),
            "evaluationInterval=15s": "evaluationInterval=5s",
            "http://alertmanager:9093": scene.alertmanager,
            **self.shipped,
        }
        self.rulers = tuple(self.server("vmalert", places) for _ in range(2))

    def server(self, name: str, places: Mapping[str, str]) -> Process:
        """A server with its file of flags, as a unit of systemd starts it."""
        text = placed((DEPLOY / f"prometheus/victoriametrics/{name}.env").read_text(), places)
        port = free_port()
        flags = dict(line.split("=", 1) for line in text.splitlines() if line and not line.startswith("#"))
        flags["httpListenAddr"] = f"127.0.0.1:{port}"
        log = self.folder / f"{name}-{port}.log"
        return Process([need(name), "-envflag.enable"], port, log, "/health", flags)

    def start(self, stack: ExitStack) -> None:
        (self.folder / "targets").mkdir()
        targets = self.scene.targets(FIRST, SECOND)
        (self.folder / "targets/roce.yml").write_text(yaml.safe_dump(targets))
        config = self.folder / "scrape.yml"
        haste = {"interval: 15s": f"interval: {SCRAPE}s", "timeout: 10s": f"timeout: {SCRAPE}s"}
        shipped = (DEPLOY / "prometheus/victoriametrics/scrape.yml").read_text()
        config.write_text(placed(shipped, haste))
        stack.enter_context(all_ready(self.victim))
        agents = [
            self.server(
                "vmagent",
                {
                    "/etc/vmagent/scrape.yml": str(config),
                    "cluster_name=a": f"cluster_name={name}",
                    "/var/lib/vmagent": str(self.folder / f"agent-{name}"),
                    **self.shipped,
                },
            )
            for name in ("a", "b")
        ]
        stack.enter_context(all_ready(*agents, *self.rulers))

    def check(self, killed: float, back: float) -> None:
        words = {
            "match[]": f'up{{instance="{QUIET}"}}',
            "start": f"{killed:.3f}",
            "end": f"{back:.3f}",
        }
        (line,) = fetch(f"{self.victim.server.url}/api/v1/export?{urlencode(words)}").splitlines()
        times = [milliseconds / 1000 for milliseconds in json.loads(line)["timestamps"]]
        assert len(times) > (back - killed) / SCRAPE / 2, "what was scraped meanwhile is missing"
        intervals = [int(at / SCRAPE) for at in times]
        assert len(intervals) == len(set(intervals)), "two samples of one interval"


RECEIVERS = tuple(f"receive-{number}" for number in range(3))
RULERS = ("rule-0", "rule-1")
HASTE = {
    "rule": {"eval-interval=15s": "eval-interval=10s"},
    "query": {"response-timeout=5s": "response-timeout=60s"},  # the machine may be busy
    "store": {"sync-block-duration=3m": "sync-block-duration=1s"},
    "compact": {"wait-interval=5m": "wait-interval=1s", "consistency-delay=30m": "consistency-delay=0s"},
}


class Thanos:
    """Agents, three receivers, of which one is killed, querier, two rulers, store gateway and compactor."""

    files = DEPLOY / "prometheus/thanos"
    others_go_on = True

    def __init__(self, scene: Scene) -> None:
        self.folder, self.scene = scene.folder, scene
        self.program = need("thanos")
        names = (*RECEIVERS, "query-0", *RULERS, "store-0", "compact-0")
        self.ports = {
            name: {"grpc": free_port(), "http": free_port(), "write": free_port()} for name in names
        }
        (self.folder / "bucket").mkdir()
        hasty_rules(self.folder)
        members = (*RECEIVERS, *RULERS, "store")
        self.place("bucket.yml", {"/var/lib/thanos": str(self.folder)})
        addresses = {
            f"{name}:10901": self.address(name if "-" in name else f"{name}-0", "grpc") for name in members
        }
        self.place("endpoints.yml", addresses)
        self.place("hashrings.json", {key: address for key, address in addresses.items() if "receive" in key})
        self.receivers = [self.server("receive", name) for name in RECEIVERS]
        self.query, self.gateway = self.server("query", "query-0"), self.server("store", "store-0")
        self.rulers = tuple(self.server("rule", name) for name in RULERS)
        self.victim = self.receivers[0]

    def address(self, name: str, kind: str) -> str:
        """Where a server listens."""
        return f"127.0.0.1:{self.ports[name][kind]}"

    def place(self, name: str, places: Mapping[str, str]) -> None:
        """A file that several servers read."""
        (self.folder / name).write_text(placed((self.files / name).read_text(), places))

    def server(self, action: str, name: str) -> Process:
        """A server with its file of flags."""
        text = (self.files / f"{action}.flags").read_text()
        places = {
            f"{action}-0:10901": self.address(name, "grpc"),
            f"{action}-0": name,
            "0.0.0.0:10901": self.address(name, "grpc"),
            "0.0.0.0:10902": self.address(name, "http"),
            "0.0.0.0:19291": self.address(name, "write"),
            "0.0.0.0:19391": f"127.0.0.1:{free_port()}",
            "query:10902": self.address("query-0", "http"),
            "http://alertmanager:9093": self.scene.alertmanager,
            "/etc/thanos": str(self.folder),
            f"/var/lib/thanos/{action}": str(self.folder / name),
        }
        present = {shipped: here for shipped, here in places.items() if shipped in text}
        path = self.folder / f"{name}.flags"
        path.write_text(placed(text, {**present, **HASTE.get(action, {})}))
        command = [self.program, action, f"@{path}"]
        return Process(command, self.ports[name]["http"], self.folder / f"{name}.log")

    def start(self, stack: ExitStack) -> None:
        self.stack = stack
        agents = [
            self.agent(cluster, replica, receiver)
            for cluster in (FIRST, SECOND)
            for replica, receiver in (("a", RECEIVERS[0]), ("b", RECEIVERS[1]))
        ]
        stack.enter_context(all_ready(*self.receivers, self.query, self.gateway))
        stack.enter_context(all_ready(*agents, *self.rulers))

    def agent(self, cluster: str, replica: str, receiver: str) -> Process:
        """A Prometheus agent that scrapes a cluster every two seconds and writes to a receiver."""
        own = self.folder / f"agent-{cluster}-{replica}"
        (own / "targets").mkdir(parents=True)
        (own / "targets/roce.yml").write_text(yaml.safe_dump(self.scene.targets(cluster)))
        places = {
            "interval: 15s": f"interval: {SCRAPE}s",
            "timeout: 10s": f"timeout: {SCRAPE}s",
            "replica: a": f"replica: {replica}",
            FIRST: cluster,
            "receive:19291": self.address(receiver, "write"),
        }
        (own / "agent.yml").write_text(placed((self.files / "agent.yml").read_text(), places))
        program, port = need("prometheus"), free_port()
        config, data = f"--config.file={own / 'agent.yml'}", f"--storage.agent.path={own / 'data'}"
        listen = f"--web.listen-address=127.0.0.1:{port}"
        return Process([program, config, data, listen, agent_flag(program)], port, own.with_suffix(".log"))

    def samples(self, selector: str, at: float, **parameters: str) -> list[dict[str, Any]]:
        """The vector that the querier returns."""
        words = {"query": selector, "time": f"{at:.3f}", "partial_response": "false", **parameters}
        return self.query.server.query("/api/v1/query", **words)["result"]

    def up(self, at: float, **parameters: str) -> dict[str, str]:
        """The sample `up` of each host."""
        found = self.samples('up{job="roce"}', at, **parameters)
        return {one["metric"]["instance"]: one["value"][1] for one in found}

    def blocks(self) -> list[dict[str, Any]]:
        """The metadata of all blocks in the bucket; a file that is being written is still empty."""
        texts = [path.read_text() for path in (self.folder / "bucket").glob("*/meta.json")]
        return [json.loads(text) for text in texts if text]

    def check(self, killed: float, back: float) -> None:
        """One of two copies is returned. What the receivers upload when they end is served by the store gateway, and compacted."""
        between = (killed + back) / 2
        for at in (between, back):
            copies = self.samples(f'roce_port_up{{instance="{QUIET}"}}', at, dedup="false")
            assert {one["metric"]["replica"] for one in copies} == {"a", "b"}
            kept = self.samples(f'roce_port_up{{instance="{QUIET}"}}', at)
            assert len(kept) == len({(one["metric"]["device"], one["metric"]["port"]) for one in copies}) > 0
            assert {one["metric"]["tenant_id"] for one in kept} == {FIRST}
        before = self.up(between)
        assert len(before) == len(self.scene.targets(FIRST, SECOND))
        for receiver in self.receivers:
            receiver.stop()
        stored = {"storeMatch[]": f'{{__address__="{self.address("store-0", "grpc")}"}}'}
        wait_until(lambda: self.up(between, **stored) == before, LONG)
        raw = {block["ulid"] for block in self.blocks()}
        assert len(raw) == 2 * len(RECEIVERS)
        self.stack.enter_context(all_ready(self.server("compact", "compact-0")))

        def merged() -> set[str]:
            """The blocks of which those are made that are of no single receiver."""
            found = [one for one in self.blocks() if "receive_replica" not in one["thanos"]["labels"]]
            return {source for block in found for source in block["compaction"]["sources"]}

        wait_until(lambda: merged() == raw, LONG)


@pytest.mark.timeout(3600)  # the alerts of both storms must end, on a machine that may be busy
@pytest.mark.parametrize("store", [VictoriaMetrics, Thanos])
def test_a_server_that_is_killed_in_a_storm_loses_no_page_and_sends_none_twice(
    store: type[VictoriaMetrics | Thanos], tmp_path: Path
) -> None:
    with scene(tmp_path) as storms, ExitStack() as stack:
        site = store(storms)
        site.start(stack)
        storms.start_storm(FIRST)
        storms.page(FIRST, "firing")
        killed = time.time()
        site.victim.kill()
        storms.start_storm(SECOND)
        if site.others_go_on:
            storms.page(SECOND, "firing")
        else:
            wait_until(lambda: storms.storm_has_begun(SECOND), LONG)
        back = time.time()
        site.victim.start()
        site.victim.wait()
        storms.page(SECOND, "firing")
        storms.end(site.rulers)
        site.check(killed, back)
