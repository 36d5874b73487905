"""A real Prometheus scrapes the exporter, in plain HTTP and over TLS with basic auth."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import bcrypt
import servers
import trustme
from host_tree import HostTree
from recorded import recording
from waiting import wait_until

COMMAND = str(Path(sys.executable).with_name("roce-exporter"))
RECORDING = recording("moving")


def check_scrape(folder: Path, job: dict[str, Any]) -> None:
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [{"job_name": "roce"} | job],
    }
    with servers.prometheus(folder, config) as prometheus:
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


def test_it_is_scraped(tmp_path: Path) -> None:
    with servers.exporter(tmp_path, "--metrics.set=full", f"--host.recording={RECORDING}") as exporter:
        check_scrape(tmp_path, {"static_configs": [{"targets": [exporter.address]}]})
        assert exporter.stop() == 0


def test_it_is_scraped_over_tls_with_basic_auth(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "key.pem")
    hashed = bcrypt.hashpw(b"sesame", bcrypt.gensalt(10)).decode()
    (tmp_path / "web.yml").write_text(
        f"tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\nbasic_auth_users:\n  scraper: {hashed}\n"
    )
    flags = ("--metrics.set=full", f"--host.recording={RECORDING}", f"--web.config.file={tmp_path}/web.yml")
    job = {
        "scheme": "https",
        "tls_config": {"ca_file": str(tmp_path / "ca.pem")},
        "basic_auth": {"username": "scraper", "password": "sesame"},
    }
    with servers.exporter(tmp_path, *flags, ready=servers.listens) as exporter:
        check_scrape(tmp_path, job | {"static_configs": [{"targets": [exporter.address]}]})


def test_sigterm_ends_it_while_a_read_is_stuck(tmp_path: Path) -> None:
    tree = HostTree(tmp_path, devices=2)
    tree.replace(tree.hw_counter("mlx5_1", "np_cnp_sent"), fifo=True)
    flags = ("--metrics.set=full", f"--path.sysfs={tmp_path}", "--collect.timeout=0.3")
    with servers.exporter(tmp_path / "daemon", *flags) as exporter:
        assert b'roce_exporter_source_up{source="hw_counters",device="mlx5_1"} 0' in exporter.get()
        assert exporter.stop() == 0, "the read never ends; on an idle machine this takes one second"
