"""A real Prometheus scrapes the exporter, in plain HTTP and over TLS with basic auth."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bcrypt
import pytest
import trustme
from host_tree import HostTree
from ports import free_port
from recorded import recording
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = str(Path(sys.executable).with_name("roce-exporter"))
RECORDING = recording("moving")


def get(url: str, password: str = "", authority: Path | None = None) -> bytes:
    request = urllib.request.Request(url)
    if password:
        request.add_header(
            "Authorization", "Basic " + base64.b64encode(f"scraper:{password}".encode()).decode()
        )
    context = ssl.create_default_context(cafile=authority) if authority else None
    with urllib.request.urlopen(request, timeout=60, context=context) as answer:
        return answer.read()


class Exporter:
    """The exporter as a separate process."""

    def __init__(self, *flags: str) -> None:
        self.process = subprocess.Popen(
            [COMMAND, "--web.listen-address=127.0.0.1:0", "--metrics.set=full", *flags],
            stderr=subprocess.PIPE,
            text=True,
        )
        self.address = ""
        while not self.address:
            line = self.process.stderr.readline()
            assert line, "the exporter ended before it listened"
            if match := re.search(r"listens on (127\.0\.0\.1:\d+)", line):
                self.address = match[1]

    def stop(self) -> int:
        self.process.terminate()
        self.process.communicate(timeout=60)
        return self.process.returncode


@pytest.fixture
def exporters() -> Iterator[list[Exporter]]:
    started: list[Exporter] = []
    yield started
    for exporter in started:
        if exporter.process.poll() is None:
            exporter.process.kill()
        exporter.process.communicate()


class Prometheus:
    """A Prometheus on loopback with one scrape job."""

    def __init__(self, folder: Path, job: dict[str, Any]) -> None:
        binary = shutil.which("prometheus")
        if binary is None:
            if os.environ.get("CI") == "true":
                pytest.fail("prometheus is not installed; CI needs it")
            pytest.skip("prometheus is not installed (apt-get install prometheus)")
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [{"job_name": "roce"} | job],
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))
        self.url = f"http://127.0.0.1:{free_port()}"
        self.log = (folder / "prometheus.log").open("w")
        self.process = subprocess.Popen(
            [
                binary,
                f"--config.file={folder}/prometheus.yml",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address={self.url.removeprefix('http://')}",
            ],
            stdout=self.log,
            stderr=self.log,
        )

    def query(self, expression: str) -> list[dict[str, Any]]:
        answer = json.loads(get(f"{self.url}/api/v1/query?query={urllib.request.quote(expression)}"))
        return answer["data"]["result"]

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self.log.close()


def check_scrape(folder: Path, job: dict[str, Any]) -> None:
    prometheus = Prometheus(folder, job)
    try:
        assert wait_until(lambda: prometheus.query("up == 1"))
        assert wait_until(lambda: prometheus.query("rate(roce_ecn_marked_packets_total[30s]) > 0"))
        assert prometheus.query("roce_port_up == 1")
        assert prometheus.query("roce_exporter_source_up == 1")
        assert prometheus.query("process_cpu_seconds_total > 0")
        (build,) = prometheus.query("roce_exporter_build_info")
        assert build["metric"]["job"] == "roce"
        joined = (
            "rate(roce_cnp_sent_total[30s]) * on (instance, device) group_left (firmware) roce_device_info"
        )
        assert prometheus.query(joined)
    finally:
        prometheus.stop()


def test_it_is_scraped(tmp_path: Path, exporters: list[Exporter]) -> None:
    exporters.append(exporter := Exporter(f"--host.recording={RECORDING}"))
    check_scrape(tmp_path, {"static_configs": [{"targets": [exporter.address]}]})
    assert exporter.stop() == 0


def test_it_is_scraped_over_tls_with_basic_auth(tmp_path: Path, exporters: list[Exporter]) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    hashed = bcrypt.hashpw(b"sesame", bcrypt.gensalt(10)).decode()
    (tmp_path / "web.yml").write_text(
        f"tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\nbasic_auth_users:\n  scraper: {hashed}\n"
    )
    exporters.append(
        exporter := Exporter(f"--host.recording={RECORDING}", f"--web.config.file={tmp_path}/web.yml")
    )
    url = f"https://{exporter.address}/metrics"
    with pytest.raises(urllib.error.HTTPError, match="401"):
        get(url, authority=tmp_path / "ca.pem")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        get(url, "wrong", tmp_path / "ca.pem")
    assert b"roce_port_up" in get(url, "sesame", tmp_path / "ca.pem")
    check_scrape(
        tmp_path,
        {
            "scheme": "https",
            "tls_config": {"ca_file": str(tmp_path / "ca.pem")},
            "basic_auth": {"username": "scraper", "password": "sesame"},
            "static_configs": [{"targets": [exporter.address]}],
        },
    )


def test_sigterm_ends_it_while_a_read_is_stuck(tmp_path: Path, exporters: list[Exporter]) -> None:
    tree = HostTree(tmp_path, devices=2)
    tree.replace(tree.hw_counter("mlx5_1", "np_cnp_sent"), fifo=True)
    exporters.append(exporter := Exporter(f"--path.sysfs={tmp_path}", "--collect.timeout=0.3"))
    wait_until(lambda: b"ready" in get(f"http://{exporter.address}/-/ready"))
    assert b'roce_exporter_source_up{source="hw_counters",device="mlx5_1"} 0' in get(
        f"http://{exporter.address}/metrics"
    )
    assert exporter.stop() == 0, "the read never ends; on an idle machine this takes one second"


def test_systemd_is_notified(tmp_path: Path) -> None:
    """READY=1 after the first collection, STOPPING=1 at the end."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.settimeout(120)
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "roce_exporter",
                f"--host.recording={RECORDING}",
                "--web.listen-address=127.0.0.1:0",
            ],
            env=os.environ | {"NOTIFY_SOCKET": str(tmp_path / "notify")},
            stderr=subprocess.DEVNULL,
        )
        try:
            assert sock.recv(100) == b"READY=1"
            process.terminate()
            assert sock.recv(100) == b"STOPPING=1"
            assert process.wait(120) == 0
        finally:
            process.kill()
            process.wait()
