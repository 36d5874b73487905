"""Measure the cost of a fleet: `python deploy/prometheus/measure.py`. Needs prometheus and promtool; takes about two minutes.

Simulated hosts under an incast, scraped by a real Prometheus with our rules. docs/operating.md has the results. With
`--hosts=5000 --ports=1 --every=60 --seconds=480` only that fleet is measured; docs/performance.md has these results.
"""

# ruff: noqa: T201, INP001 - a measurement prints its table and is not a package
# ruff: noqa: S603, S607, S310 - it runs Prometheus and queries it on loopback
from __future__ import annotations

import argparse
import asyncio
import gzip
import itertools
import json
import logging
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.audit import Auditor, load_profile
from roce_exporter.collect import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.simulation.kernel import simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
RULES = (ROOT / "alerts/roce.rules.yml", ROOT / "dashboards/roce-dashboards.rules.yml")
PORTS = 8
SCRAPE = 15


class Fleet(NamedTuple):
    """Number of hosts and of ports per host, the scrape interval, and the duration of the measurement in seconds."""

    hosts: int = 40
    ports: int = PORTS
    every: int = 5
    seconds: int = 90


async def expositions(vendors: Sequence[str], moments: int, seed: int = 1) -> list[str]:
    """The expositions of a host under an incast, one per scrape, for `moments` scrapes."""
    clock = itertools.count(step=SCRAPE)
    now = [0.0]
    kernel = simulate("incast", clock=lambda: now[0], vendors=vendors, seed=seed)
    collector = Collector(kernel, Settings(), lambda: now[0])
    exporter = Exporter(collector, auditor=Auditor(load_profile("auto")))
    texts = []
    for at in itertools.islice(clock, moments):
        now[0] = float(at)
        texts.append(exporter.render(await exporter.observe(5.0), Format.TEXT).decode())
    collector.close()
    return texts


def samples(text: str) -> list[str]:
    """The lines that are samples."""
    return [line for line in text.splitlines() if not line.startswith("#")]


def print_series() -> None:
    """Series and bytes per scrape, by driver."""
    print("| driver | series per port | bytes per scrape, 8 ports | gzipped |\n| --- | --- | --- | --- |")
    for vendor in ("mlx5", "bnxt", "ionic", "ice"):
        (text,) = asyncio.run(expositions((vendor,) * PORTS, 1))
        body = text.encode()
        print(
            f"| {vendor} | {len(samples(text)) / PORTS:.0f} | {len(body):,} | {len(gzip.compress(body, 1)):,} |"
        )


def print_disk(folder: Path) -> None:
    """Bytes per sample in a block of two hours."""
    place = folder / "history.om"
    with place.open("w") as file:
        for number, text in enumerate(asyncio.run(expositions(("mlx5",) * PORTS, 7200 // SCRAPE))):
            at = 1_767_225_600 + number * SCRAPE
            file.writelines(f"{line} {at}\n" for line in samples(text))
        file.write("# EOF\n")
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(place), str(folder / "blocks")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    size = count = 0
    for meta in (folder / "blocks").glob("*/meta.json"):
        stats = json.loads(meta.read_text())["stats"]
        count += stats["numSamples"]
        size += sum(path.stat().st_size for path in meta.parent.rglob("*") if path.is_file())
    print(f"\n{count:,} samples of two hours take {size / count:.2f} bytes each, index included")


class Host(BaseHTTPRequestHandler):
    """Serves the recorded expositions of a host, one after the other."""

    moments: tuple[bytes, ...] = ()
    started = 0.0
    every = 0

    def do_GET(self) -> None:
        """One exposition."""
        number = int((time.monotonic() - self.started) / self.every) % len(self.moments)
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(self.moments[number])

    def log_message(self, *words: object) -> None:
        """Log nothing."""


def value_of(url: str, expression: str) -> float:
    """The value of an expression with one result; NaN without a result."""
    with urllib.request.urlopen(f"{url}/api/v1/query?query={urllib.parse.quote(expression)}") as answer:
        result = json.load(answer)["data"]["result"]
    return float(result[0]["value"][1]) if result else float("nan")


def configuration(port: int, fleet: Fleet) -> str:
    """A Prometheus with our rules and a fleet on one address."""
    targets = [
        {"targets": [f"127.0.0.1:{port}"], "labels": {"instance": f"gpu-{number}", "cluster": "measured"}}
        for number in range(fleet.hosts)
    ]
    jobs = [
        {"job_name": "roce", "static_configs": targets},
        {
            "job_name": "prometheus",
            "scrape_interval": "5s",
            "static_configs": [{"targets": ["127.0.0.1:19190"]}],
        },
    ]
    rules = [str(path) for path in RULES]
    times = {"scrape_interval": f"{fleet.every}s", "evaluation_interval": f"{fleet.every}s"}
    return json.dumps({"global": times, "rule_files": rules, "scrape_configs": jobs})


def print_prometheus(folder: Path, fleet: Fleet) -> None:
    """Memory per series and seconds per evaluation of all rules."""
    texts = asyncio.run(expositions(("mlx5",) * fleet.ports, 2 + fleet.seconds // fleet.every))
    Host.moments = tuple(text.encode() for text in texts)
    Host.started, Host.every = time.monotonic(), fleet.every
    with ThreadingHTTPServer(("127.0.0.1", 0), Host) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        config = folder / "prometheus.json"
        config.write_text(configuration(server.server_port, fleet))
        command = [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            "--web.listen-address=127.0.0.1:19190",
        ]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            time.sleep(fleet.seconds)
            print_figures("http://127.0.0.1:19190", fleet)
        finally:
            process.terminate()
            process.wait()
        server.shutdown()


def print_figures(url: str, fleet: Fleet) -> None:
    """Prometheus' own metrics of the measurement."""
    series = value_of(url, "prometheus_tsdb_head_series")
    memory = value_of(url, 'process_resident_memory_bytes{job="prometheus"}')
    rules = value_of(url, "sum(prometheus_rule_group_last_duration_seconds)")
    missed = value_of(url, "sum(prometheus_rule_group_iterations_missed_total)")
    late = value_of(url, 'quantile(0.99, scrape_duration_seconds{job="roce"})')
    samples_of_host = value_of(url, 'avg(scrape_samples_scraped{job="roce"})')
    cpu = value_of(url, 'rate(process_cpu_seconds_total{job="prometheus"}[1m])')
    said = subprocess.run(["prometheus", "--version"], capture_output=True, text=True, check=True)
    version = (said.stdout + said.stderr).split("version ")[1].split()[0]
    print(
        f"Prometheus {version}, {fleet.hosts} hosts of {fleet.ports} ports, scraped every {fleet.every} s for "
        f"{fleet.seconds} s, then:"
    )
    print(f"{samples_of_host:,.0f} samples per host and scrape; 99 of 100 scrapes within {late:.2f} s")
    print(f"{series:,.0f} series, {memory / 2**20:,.0f} MiB: {memory / series:,.0f} bytes per series")
    print(
        f"{rules:.2f} s for one evaluation of all rules, one group after the other, {missed:.0f} missed; {cpu:.2f} cores in all"
    )


def requested_fleet() -> Fleet | None:
    """The fleet of the command line; None for all measurements of docs/operating.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    for field in Fleet._fields:
        parser.add_argument(f"--{field}", type=int, default=Fleet._field_defaults[field])
    fleet = Fleet(**vars(parser.parse_args()))
    return fleet if fleet != Fleet() else None


def main() -> None:
    """Measure."""
    fleet = requested_fleet()
    logging.disable(logging.WARNING)
    folder = Path(tempfile.mkdtemp())
    try:
        if fleet is None:
            print_series()
            print_disk(folder)
        print_prometheus(folder, fleet or Fleet())
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
