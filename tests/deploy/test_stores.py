"""Stores for more hosts than one Prometheus holds, with the files of deploy/prometheus: one server is killed in a storm.

Two clusters, two agents and two rulers for each store, an Alertmanager with our routes. One storm is paged before the kill, the other begins
while the server is away. Each is one page. docs/operating.md has the versions.
"""

import json
import time
from collections.abc import Mapping
from contextlib import ExitStack
from urllib.parse import urlencode

import pytest
import yaml
from deploy_tools import DEPLOY, ROOT, fetch, ran
from servers import kept_port
from storm_scene import FIRST, LONG, SECOND, Process, Scene, all_ready, hasty_rules, placed, scene
from tools import need
from waiting import wait_until

pytestmark = pytest.mark.nightly

SCRAPE = 2
QUIET = f"{FIRST}-quiet"


class VictoriaMetrics:
    """Two vmagents, a store, which is killed, and two vmalerts."""

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
        self.shipped = {"http://victoria-metrics:8428": self.victim.url}
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
        port = kept_port()
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
        words = {"match[]": f'up{{instance="{QUIET}"}}', "start": f"{killed:.3f}", "end": f"{back:.3f}"}
        (line,) = fetch(f"{self.victim.url}/api/v1/export?{urlencode(words)}").splitlines()
        times = [milliseconds / 1000 for milliseconds in json.loads(line)["timestamps"]]
        assert len(times) > (back - killed) / SCRAPE / 2, "what was scraped meanwhile is missing"
        intervals = [int(at / SCRAPE) for at in times]
        assert len(intervals) == len(set(intervals)), "two samples of one interval"


@pytest.mark.timeout(3600)  # the alerts of both storms must end, on a machine that may be busy
def test_a_store_that_is_killed_in_a_storm_loses_no_page_and_sends_none_twice(tmp_path) -> None:
    with scene(tmp_path) as storms, ExitStack() as stack:
        site = VictoriaMetrics(storms)
        site.start(stack)
        storms.start_storm(FIRST)
        storms.page(FIRST, "firing")
        killed = time.time()
        site.victim.kill()
        storms.start_storm(SECOND)
        wait_until(lambda: storms.storm_has_begun(SECOND), LONG)
        back = time.time()
        site.victim.start()
        site.victim.wait()
        storms.page(SECOND, "firing")
        storms.end(site.rulers)
        site.check(killed, back)
