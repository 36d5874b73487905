"""A fleet as the service discoveries report it (constructed), and what promtool, Prometheus and vmagent make of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml
from deploy_tools import DEPLOY, fetch_json, ran
from tools import need

if TYPE_CHECKING:
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


def relabelled(job: dict[str, Any], folder: Path, count: int) -> list[Found]:
    """What `promtool check service-discovery` prints for a job: all of `count` targets.

    promtool stops after its timeout, no matter what has been found, so it gets more time until nothing is missing.
    """
    place = folder / "discovered.yml"
    place.write_text(yaml.safe_dump({"scrape_configs": [job]}))
    seconds = 1
    while True:
        flags = ("check", "service-discovery", f"--timeout={seconds}s", place, job["job_name"])
        done = ran(need("promtool"), *flags)
        assert done.returncode == 0, done.stderr[-2000:]
        found = [
            Found(one["discoveredLabels"], one.get("labels") or {}) for one in json.loads(done.stdout) or ()
        ]
        if len(found) >= count or seconds >= LONGEST:
            assert len(found) == count, done.stderr[-2000:]
            return found
        seconds *= 3


def targets_of(url: str) -> list[Found]:
    """The targets that a running Prometheus or vmagent scrapes."""
    active = fetch_json(f"{url}/api/v1/targets?state=active")["data"]["activeTargets"]
    return [Found(one["discoveredLabels"], one["labels"]) for one in active]
