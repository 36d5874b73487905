"""What do the rules of links and switches cost a Prometheus? Hosts of one port on switches of 64, with the series that these rules read.

The rest of the rules is measured by the table `fleet`; both add up. A fleet without switches is measured too.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

RULES = Path(__file__).parent.parent / "alerts/roce.rules.yml"
ADDRESS = "127.0.0.1:19191"
SWITCH_PORTS = 64
PRIORITIES = (3, 4)
EVERY = 60
EVALUATE = 15
SECONDS = 340
"""So that windows of five minutes are full."""
SIZES = ((1000, False), (1000, True), (5000, True))
"""Numbers of hosts, and whether their switches are scraped."""


class Figures(NamedTuple):
    """What Prometheus reports about the two groups of rules."""

    hosts: int
    links: float
    scraped: float
    recorded: float
    links_seconds: float
    switch_seconds: float


def mac_of(number: int) -> str:
    """The MAC address of a host's port."""
    return f"02:00:00:{number >> 16:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"


def host_page(number: int, seconds: float) -> str:
    """One RDMA port that is paused 1 % of the time, and sends as much pause."""
    port = 'device="mlx5_0",port="1",netdev="eth0"'
    lines = [
        f'roce_netdev_info{{{port},mac="{mac_of(number)}",hostname="gpu-{number}"}} 1',
        f"roce_link_speed_bytes_per_second{{{port}}} 5e10",
    ]
    for priority in PRIORITIES:
        labels = f'{{{port},priority="{priority}"}}'
        lines.append(f"roce_pfc_enabled{labels} 1")
        for way in ("receive", "transmit"):
            lines.append(f"roce_pfc_{way}_frames_total{labels} {100 * seconds:.0f}")
            lines.append(f"roce_pfc_{way}_pause_seconds_total{labels} {0.01 * seconds:.3f}")
    return "\n".join([*lines, ""])


def switch_page(switch: int, seconds: float) -> str:
    """Every metric of a switch that a rule reads, for 64 ports of two priorities with PFC each."""
    name = f'device="leaf{switch}"'
    lines = [
        f'roce_switch_info{{{name},os="sonic",version="",model="",asic=""}} 1',
        f"roce_switch_probe_success{{{name}}} 1",
    ]
    for place in range(SWITCH_PORTS):
        number = switch * SWITCH_PORTS + place
        port = f'{name},port="Ethernet{4 * place}"'
        mac = mac_of(number)
        lines.append(
            f'roce_switch_lldp_neighbor_info{{{port},neighbor="gpu-{number}",neighbor_chassis="",neighbor_port="{mac}",'
            f'neighbor_description="eth0",neighbor_mac="{mac}",port_id_kind="mac",source="lldp"}} 1'
        )
        for priority in PRIORITIES:
            lines += priority_lines(port, priority, seconds)
    return "\n".join([*lines, ""])


def priority_lines(port: str, priority: int, seconds: float) -> list[str]:
    """The series of one priority, its queue and its priority group."""
    of_priority, of_queue = f'{{{port},priority="{priority}"}}', f'{{{port},queue="{priority}"}}'
    of_group = f'{{{port},priority_group="{priority}"}}'
    window = f'{{{port},priority_group="{priority}",window="periodic"}}'
    return [
        f'roce_switch_queue_info{{{port},priority="{priority}",queue="{priority}",priority_group="{priority}"}} 1',
        f"roce_switch_pfc_enabled{of_priority} 1",
        f"roce_switch_pfc_receive_frames_total{of_priority} {100 * seconds:.0f}",
        f"roce_switch_pfc_transmit_frames_total{of_priority} {100 * seconds:.0f}",
        f"roce_switch_pfc_receive_pause_seconds_total{of_priority} {0.01 * seconds:.3f}",
        f"roce_switch_pfc_watchdog_enabled{of_queue} 1",
        f"roce_switch_pfc_watchdog_acts{of_queue} 1",
        f"roce_switch_pfc_watchdog_tripped{of_queue} 0",
        f"roce_switch_pfc_watchdog_trips_total{of_queue} 0",
        f"roce_switch_queue_discards_total{of_queue} 0",
        f"roce_switch_config_ecn_enabled{of_queue} 1",
        f"roce_switch_config_ecn_minimum_bytes{of_queue} 1e6",
        f"roce_switch_config_ecn_maximum_bytes{of_queue} 2e6",
        f"roce_switch_buffer_discards_total{of_group} 0",
        f"roce_switch_buffer_headroom_bytes{of_group} 1e5",
        f"roce_switch_buffer_pause_threshold_bytes{of_group} 2e6",
        f"roce_switch_buffer_headroom_watermark_bytes{window} 1e4",
    ]


class Fabric(BaseHTTPRequestHandler):
    """Serves `/host/N` and `/switch/N`."""

    started = 0.0

    def do_GET(self) -> None:
        """One exposition."""
        _, kind, number = self.path.split("/")
        page = host_page if kind == "host" else switch_page
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(page(int(number), time.monotonic() - self.started).encode())

    def log_message(self, *words: object) -> None:
        """Log nothing."""


def configuration(address: str, hosts: int, switches: int) -> str:
    """A Prometheus with our rules, the hosts and the switches."""

    def targets(kind: str, count: int) -> list[dict[str, object]]:
        return [
            {
                "targets": [address],
                "labels": {"instance": f"{kind}-{number}", "__metrics_path__": f"/{kind}/{number}"},
            }
            for number in range(count)
        ]

    return json.dumps(
        {
            "global": {"scrape_interval": f"{EVERY}s", "evaluation_interval": f"{EVALUATE}s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [
                {"job_name": "roce", "static_configs": targets("host", hosts)},
                {"job_name": "roce-switch", "static_configs": targets("switch", switches)},
                {
                    "job_name": "prometheus",
                    "scrape_interval": "5s",
                    "static_configs": [{"targets": [ADDRESS]}],
                },
            ],
        }
    )


def value_of(expression: str) -> float:
    """The value of an expression with one result; 0 without a result."""
    url = f"http://{ADDRESS}/api/v1/query?query={urllib.parse.quote(expression)}"
    with urllib.request.urlopen(url) as answer:
        result = json.load(answer)["data"]["result"]
    return float(result[0]["value"][1]) if result else 0.0


def figures(hosts: int) -> Figures:
    """What Prometheus reports now."""
    # the fastest of the last evaluations: the machine does other work too
    group = 'sum(min_over_time(prometheus_rule_group_last_duration_seconds{{rule_group=~".*;roce-{}(-slow|-rare)?"}}[150s]))'
    return Figures(
        hosts,
        value_of("count(link:roce_switch_port:info)"),
        value_of('sum(scrape_samples_scraped{job="roce-switch"})'),
        value_of('count({__name__=~"(link|port|netdev|queue):.+"})'),
        value_of(group.format("links")),
        value_of(group.format("switch")),
    )


def measure(folder: Path, hosts: int, *, with_switches: bool) -> Figures:
    """Run Prometheus for a while and read its own metrics."""
    Fabric.started = time.monotonic()
    switches = -(-hosts // SWITCH_PORTS) if with_switches else 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Fabric) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        config = folder / "prometheus.json"
        config.write_text(configuration(f"127.0.0.1:{server.server_port}", hosts, switches))
        command = [
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            f"--web.listen-address={ADDRESS}",
        ]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: S603 - our own configuration
        try:
            time.sleep(SECONDS)
            return figures(hosts)
        finally:
            process.terminate()
            process.wait()
            server.shutdown()


def main() -> None:
    """Print the cost of each size."""
    if not shutil.which("prometheus"):
        print("left out: needs Prometheus (apt-get install prometheus)")
        return
    print(
        "| hosts | links | samples from switches | recorded series per link | rules of links | rules of switches |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for hosts, with_switches in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            got = measure(Path(folder), hosts, with_switches=with_switches)
        per_link = f"{got.recorded / got.links:.1f}" if got.links else "-"
        print(
            f"| {hosts:,} | {got.links:,.0f} | {got.scraped:,.0f} | {per_link} | {got.links_seconds:.3f} s | "
            f"{got.switch_seconds:.3f} s |",
            flush=True,
        )


if __name__ == "__main__":
    main()
