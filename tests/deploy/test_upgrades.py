"""Upgrades in waves, and the queries of docs/operating.md that find hosts with another version: with a real Prometheus and our rules.

The hosts are constructed pages; the command of an upgrade writes the new version into the page of its host.
"""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from deploy_tools import DEPLOY, ROOT, ran
from http_answers import answering
from servers import Running, prometheus
from tools import need
from waiting import wait_until

pytestmark = pytest.mark.ci

SCRIPT = DEPLOY / "examples/upgrade-in-waves.sh"
WAVES = {
    "canary": ["gpu-r01-n01"],
    "r01": ["gpu-r01-n02", "gpu-r01-n03"],
    "rest": ["gpu-r02-n01", "gpu-r02-n02"],
}
HOSTS = [host for wave in WAVES.values() for host in wave]
PAGE = (
    'roce_exporter_build_info{{version="{version}",python="3.11.2"}} 1\n'
    'roce_exporter_source_up{{device="mlx5_0",port="1",source="hw_counters"}} {up}\n'
)
UPGRADE = """#!/bin/sh
echo "$2" >>"$1/order"
[ "$2" != "{refuses}" ] || exit 1
sed 's/version="1.0"/version="2.0"/' "$1/$2" >"$1/$2.new" && mv "$1/$2.new" "$1/$2"
"""
LONG = "900"
"""Seconds for what must happen: the machine may be busy."""


@contextmanager
def fleet(folder: Path, broken: str = "") -> Iterator[Running]:
    """A Prometheus with our alerts on the exporter that scrapes all hosts; their pages are files of the folder."""
    for host in HOSTS:
        (folder / host).write_text(PAGE.format(version="1.0", up=int(host != broken)))
    rules = yaml.safe_load((ROOT / "alerts/roce.rules.yml").read_text())
    own = [
        {"name": group["name"], "rules": group["rules"]}  # each at every evaluation
        for group in rules["groups"]
        if group["name"] in ("roce-exporter", "roce-exporter-slow", "roce-exporter-rare")
    ]
    assert own
    (folder / "rules.yml").write_text(yaml.safe_dump({"groups": own}))
    with answering(lambda path: (200, (folder / path.strip("/")).read_bytes())) as pages:
        pages.headers["Content-Type"] = "text/plain; version=0.0.4"
        labels = {
            host: {"instance": host, "rack": host.split("-")[1], "__metrics_path__": f"/{host}"}
            for host in HOSTS
        }
        targets = [
            {
                "targets": [pages.url.removeprefix("http://")],
                "labels": {"cluster": "fabric-a", **labels[host]},
            }
            for host in HOSTS
        ]
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [{"job_name": "roce", "static_configs": targets}],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        with prometheus(folder, folder / "prometheus.yml") as found:
            wait_until(lambda: len(found.values("roce_exporter_build_info")) == len(HOSTS))
            yield found


def upgrade(
    folder: Path, url: str, *waves: str, refuses: str = "none", seconds: str = LONG
) -> subprocess.CompletedProcess[str]:
    """Run the script over these waves; on one host the command fails."""
    need("curl")
    command = folder / "upgrade.sh"
    command.write_text(UPGRADE.format(refuses=refuses))
    command.chmod(0o755)
    lines = "".join(f"{wave} {host}\n" for wave in waves for host in WAVES[wave])
    own = {"ROCE_WAVE_SECONDS": seconds, "ROCE_WAVE_STEADY": "2", "ROCE_WAVE_PARALLEL": "1"}
    return ran(SCRIPT, url, "2.0", command, folder, input=lines, env={**os.environ, **own})


def queries() -> list[str]:
    """The queries on versions in docs/operating.md."""
    blocks = re.findall(r"```promql\n(.*?)```", (ROOT / "docs/operating.md").read_text(), re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if "build_info" in line]


def versions(server: Running) -> dict[str, str]:
    return {dict(one)["instance"]: dict(one)["version"] for one in server.values("roce_exporter_build_info")}


def documented_waves(folder: Path, url: str) -> list[list[list[str]]]:
    """The lines of the files racks and hashed that the documented commands write."""
    text = (ROOT / "docs/operating.md").read_text()
    (commands,) = re.findall(r"```shell\n(promtool query.*?)```", text, re.DOTALL)
    need("promtool")
    here = commands.replace("http://prometheus:9090", url)
    subprocess.run(["bash", "-euo", "pipefail", "-c", here], cwd=folder, check=True)
    return [
        [line.split() for line in (folder / name).read_text().splitlines()] for name in ("racks", "hashed")
    ]


def test_every_wave_is_upgraded_in_order(tmp_path) -> None:
    with fleet(tmp_path) as server:
        racks, hashed = documented_waves(tmp_path, server.url)
        assert racks == [[host.split("-")[1], host] for host in HOSTS]
        assert sorted(host for _, host in hashed) == HOSTS
        assert [int(wave) for wave, _ in hashed] == sorted(int(wave) for wave, _ in hashed)
        done = upgrade(tmp_path, server.url, *WAVES)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines() == [
            f"wave {wave}: {len(members)} hosts have version 2.0" for wave, members in WAVES.items()
        ]
        assert (tmp_path / "order").read_text().split() == HOSTS
        assert versions(server) == dict.fromkeys(HOSTS, "2.0")


def test_a_wave_with_a_broken_source_stops_the_upgrade(tmp_path) -> None:
    """Its alert is only pending. The queries of the documentation find the mixture and the hosts of the smaller part."""
    with fleet(tmp_path, broken="gpu-r01-n03") as server:
        wait_until(lambda: server.values('ALERTS{alertstate="pending"}'))
        assert upgrade(tmp_path, server.url, "canary").returncode == 0
        done = upgrade(tmp_path, server.url, "r01", "rest", seconds="5")
        assert done.returncode == 1
        assert re.fullmatch(r"wave r01: .* 1 alerts; stopped\n", done.stderr)
        assert (tmp_path / "order").read_text().split() == [*WAVES["canary"], *WAVES["r01"]]
        wait_until(lambda: list(versions(server).values()).count("2.0") == 3)
        count, minority = queries()
        found = {dict(key)["version"]: value for key, value in server.values(count).items()}
        assert found == {"1.0": 2.0, "2.0": 3.0}
        assert {dict(key)["instance"] for key in server.values(minority)} == set(WAVES["rest"])


def test_a_command_that_fails_stops_the_upgrade(tmp_path) -> None:
    with fleet(tmp_path) as server:
        done = upgrade(tmp_path, server.url, *WAVES, refuses="gpu-r01-n02")
    assert done.returncode == 1
    assert done.stderr.endswith("wave r01: the command failed on a host; stopped\n")
    assert "gpu-r02" not in (tmp_path / "order").read_text()


def test_without_prometheus_nothing_counts_as_fit(tmp_path) -> None:
    (tmp_path / HOSTS[0]).write_text(PAGE.format(version="1.0", up=1))
    done = upgrade(tmp_path, "http://127.0.0.1:1", *WAVES, seconds="2")
    assert done.returncode == 1
    assert "wave canary: " in done.stderr
    assert (tmp_path / "order").read_text().split() == WAVES["canary"]


@pytest.mark.parametrize("line", ["canary", "\n"])
def test_a_line_without_a_host_is_refused(line) -> None:
    done = ran(SCRIPT, "http://127.0.0.1:1", "2.0", "true", input=f"{line}\n")
    assert done.returncode == 2
    assert "not a wave and a host" in done.stderr
