"""From a card to the pager: a storm, the exporter, Prometheus with our rules, Alertmanager with our routes."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from daemon import Exporter
from monitoring import ALERTMANAGER, ALERTS, prometheus, server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nic import Nic

pytestmark = pytest.mark.timeout(240)


class Pager:
    """A pager: a webhook that stores the messages."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        pager = self

        class Answer(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                pager.messages.append(json.loads(self.rfile.read(size)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Answer)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/"


def hasten(route: dict[str, Any]) -> None:
    """Our routes without their waiting times, which would take too long in a test."""
    if "group_wait" in route:
        route["group_wait"] = "0s"
    for below in route.get("routes", ()):
        hasten(below)


def alertmanager_config(pager: str) -> dict[str, Any]:
    config = yaml.safe_load((ALERTS / "alertmanager.yml").read_text())
    hasten(config["route"])
    names = [receiver["name"] for receiver in config["receivers"]]
    config["receivers"] = [
        {"name": name} | ({"webhook_configs": [{"url": pager}]} if name == "pager" else {}) for name in names
    ]
    del config["global"], config["templates"]
    return config


@pytest.fixture
def chain(cards: dict[str, Nic], tmp_path: Path) -> Iterator[Pager]:
    """Everything but the storm."""
    pager = Pager()
    exporter = Exporter("--sampler.mode=fixed")
    (tmp_path / "alertmanager.yml").write_text(yaml.safe_dump(alertmanager_config(pager.url)))
    flags = (f"--config.file={tmp_path}/alertmanager.yml", f"--storage.path={tmp_path}/notices")
    listen = (f"--web.listen-address={ALERTMANAGER}", "--cluster.listen-address=")
    with server(tmp_path, "alertmanager", *flags, *listen), prometheus(tmp_path, exporter):
        yield pager
    pager.server.shutdown()
    assert exporter.stop() == 0


def test_a_storm_that_a_card_sends_is_a_page(cards: dict[str, Nic], chain: Pager) -> None:
    nic = cards["mlx5_0"]
    paused, last, begun = 0.0, time.monotonic(), time.monotonic()
    while not chain.messages:
        assert time.monotonic() < begun + 150, "no page was sent"
        time.sleep(0.01)
        now = time.monotonic()
        paused, last = paused + now - last, now
        nic.leg("ethtool").set(
            {"tx_prio3_pause_duration": int(paused * 1e6), "tx_prio3_pause": int(paused * 3000)}
        )
    (alert, *_) = [one for one in chain.messages[0]["alerts"] if one["labels"]["alertname"] == "RocePfcStorm"]
    assert alert["status"] == "firing"
    assert alert["labels"]["severity"] == "critical"
    assert (
        alert["annotations"]["summary"]
        == f"PFC storm sent by lab mlx5_0/1 ({nic.netdevs[0]}) priority 3. It stops its switch port."
    )
    assert "Drain lab" in alert["annotations"]["description"]
