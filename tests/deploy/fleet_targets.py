"""Ten thousand hosts as the service discoveries report them (constructed), and what promtool and vmagent make of them."""

from __future__ import annotations

import json
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml
from deploy_tools import DEPLOY, fetch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PORT = 10123
FOLDER = DEPLOY / "prometheus"
NODES_PER_RACK = 40
LONGEST = 60
"""Seconds for which promtool may discover at most: it always takes all the time that it is given."""

Labels = dict[str, str]


class Host(NamedTuple):
    """A host of the inventory."""

    rack: int
    node: int

    @property
    def name(self) -> str:
        """The name without its domain."""
        return f"gpu-r{self.rack:03}-n{self.node:02}"

    @property
    def domain_name(self) -> str:
        """The name with its domain."""
        return f"{self.name}.example.com"

    @property
    def address(self) -> str:
        """The IPv4 address."""
        return f"10.{self.rack // 200}.{self.rack % 200}.{self.node + 1}"

    def labels(self, cluster: str = "fabric-a") -> Labels:
        """The four labels that every target must have."""
        return {"cluster": cluster, "instance": self.name, "rack": f"r{self.rack:03}", "role": "gpu"}


def hosts(count: int) -> list[Host]:
    """The first hosts of the fleet, in racks of forty."""
    return [Host(number // NODES_PER_RACK, number % NODES_PER_RACK) for number in range(count)]


def netbox_group(host: Host, status: str = "active") -> dict[str, Any]:
    """A device as netbox-plugin-prometheus-sd serves it: one group of one target, a name without a port."""
    facts = {
        "id": str(host.rack * 100 + host.node),
        "name": host.domain_name,
        "status": status,
        "model": "Device",
        "device_type": "GPU server",
        "role": "GPU",
        "role_slug": "gpu",
        "site": "Fabric A",
        "site_slug": "fabric-a",
        "rack": f"r{host.rack:03}",
        "rack_u_position": "12.0",
        "primary_ip": host.address,
        "primary_ip4": host.address,
    }
    return {
        "targets": [host.domain_name],
        "labels": {f"__meta_netbox_{key}": value for key, value in facts.items()},
    }


@contextmanager
def inventory(groups: list[dict[str, Any]]) -> Iterator[str]:
    """The URL of a server of these targets, which requires what Prometheus documents of its requests."""
    body = json.dumps(groups).encode()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            refresh = self.headers.get("X-Prometheus-Refresh-Interval-Seconds")
            self.send_response(200 if refresh else 400)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            """Log nothing."""

    with serving(Answer) as url:
        yield url


@contextmanager
def serving(answer: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The URL of an HTTP server on loopback."""
    with ThreadingHTTPServer(("127.0.0.1", 0), answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def job_of(file: str, name: str) -> dict[str, Any]:
    """A scrape job of one of our configurations."""
    config = yaml.safe_load((FOLDER / file).read_text())
    return next(job for job in config["scrape_configs"] if job["job_name"] == name)


def from_file(job: dict[str, Any], groups: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    """The same job with these targets from a file, in place of its own discovery."""
    place = folder / f"{job['job_name']}-targets.json"
    place.write_text(json.dumps(groups))
    own = {key: value for key, value in job.items() if not key.endswith("_sd_configs")}
    return own | {"file_sd_configs": [{"files": [str(place)]}]}


class Found(NamedTuple):
    """A discovered target and its labels after relabelling; none if it was dropped."""

    discovered: Labels
    labels: Labels

    @property
    def shown(self) -> Labels:
        """The labels of its series, without the job."""
        return {key: value for key, value in self.labels.items() if not key.startswith("__") and key != "job"}


def relabelled(promtool: str, job: dict[str, Any], folder: Path, count: int) -> list[Found]:
    """What `promtool check service-discovery` prints for a job: all of `count` targets.

    promtool stops after its timeout, no matter what has been found, so it gets more time until nothing is missing.
    """
    place = folder / "discovered.yml"
    place.write_text(yaml.safe_dump({"scrape_configs": [job]}))
    seconds = 1
    while True:
        command = [promtool, "check", "service-discovery", f"--timeout={seconds}s", place, job["job_name"]]
        verdict = subprocess.run(command, capture_output=True, text=True, check=False)
        assert verdict.returncode == 0, verdict.stderr[-2000:]
        found = [
            Found(one["discoveredLabels"], one.get("labels") or {})
            for one in json.loads(verdict.stdout) or ()
        ]
        if len(found) >= count or seconds >= LONGEST:
            assert len(found) == count, verdict.stderr[-2000:]
            return found
        seconds *= 3


def targets_of(url: str) -> list[Found]:
    """The targets that a running Prometheus or vmagent scrapes."""
    told = json.loads(fetch(f"{url}/api/v1/targets?state=active"))["data"]
    return [Found(one["discoveredLabels"], one["labels"]) for one in told["activeTargets"]]
