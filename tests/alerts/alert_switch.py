"""A switch for the tests: what its exporter would serve while the host behind one of its ports sends a storm."""

from __future__ import annotations

import re
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STORM = re.compile(r'^roce_pfc_storm_active\{device="mlx5_0".*direction="transmit".*\} 1$', re.MULTILINE)
MAC = re.compile(r'^roce_netdev_info\{device="mlx5_0".*mac="([^"]+)"', re.MULTILINE)


def exposition(mac: str, storming: bool, trips: int) -> str:
    """The switch's series: its watchdog trips when the host sends a storm, and restores the queue afterwards."""
    port = 'device="leaf1",port="Ethernet0"'
    neighbor = (
        f'neighbor="gpu-1",neighbor_chassis="",neighbor_port="{mac}",neighbor_description="",'
        f'neighbor_mac="{mac}",port_id_kind="mac",source="lldp"'
    )
    return f"""\
roce_switch_probe_success{{device="leaf1"}} 1
roce_switch_lldp_neighbor_info{{{port},{neighbor}}} 1
roce_switch_queue_info{{{port},priority="3",queue="3",priority_group="3"}} 1
roce_switch_pfc_enabled{{{port},priority="3"}} 1
roce_switch_pfc_watchdog_enabled{{{port},queue="3"}} 1
roce_switch_pfc_watchdog_tripped{{{port},queue="3"}} {int(storming)}
roce_switch_pfc_watchdog_trips_total{{{port},queue="3"}} {trips}
roce_switch_queue_discards_total{{{port},queue="3"}} {1000 * trips}
"""


class Switch:
    """A server of `/probe`. Port mlx5_0 of the host with this exporter is connected to Ethernet0."""

    def __init__(self, exporter: str) -> None:
        self.exporter = exporter
        self.storming = False
        self.trips = 0
        switch = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(switch.page().encode())

            def log_message(self, *words: object) -> None:
                """Log nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.address = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def page(self) -> str:
        """The body; the host's MAC address and storm are what its exporter reports now."""
        with urllib.request.urlopen(f"http://{self.exporter}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        storming = bool(STORM.search(text))
        self.trips += storming and not self.storming
        self.storming = storming
        return exposition(MAC.search(text)[1], storming, self.trips)

    def close(self) -> None:
        """Stop serving."""
        self.server.shutdown()
        self.server.server_close()
