"""A real Prometheus scrapes the exporter, in plain HTTP and over TLS with basic auth."""

from pathlib import Path

import bcrypt
import servers
import trustme
from host_tree import HostTree
from recorded import recording
from waiting import wait_until

RECORDING = recording("moving")


def web_config(folder: Path) -> Path:
    """TLS with a certificate of an own authority, and one user."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    certificate.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    hashed = bcrypt.hashpw(b"sesame", bcrypt.gensalt(4)).decode()
    (folder / "web.yml").write_text(
        f"tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\nbasic_auth_users:\n  scraper: {hashed}\n"
    )
    return folder / "web.yml"


def test_it_is_scraped_plainly_and_over_tls_with_basic_auth(tmp_path) -> None:
    flags = ("--metrics.set=full", f"--host.recording={RECORDING}")
    secured = (*flags, f"--web.config.file={web_config(tmp_path)}")
    access = {
        "scheme": "https",
        "tls_config": {"ca_file": str(tmp_path / "ca.pem")},
        "basic_auth": {"username": "scraper", "password": "sesame"},
    }
    with (
        servers.exporter(tmp_path / "plain", *flags) as plain,
        servers.exporter(tmp_path / "tls", *secured, ready=servers.listens) as tls,
    ):
        jobs = [
            {"job_name": "roce", "static_configs": [{"targets": [plain.address]}]},
            access | {"job_name": "tls", "static_configs": [{"targets": [tls.address]}]},
        ]
        config = {"global": {"scrape_interval": "2s"}, "scrape_configs": jobs}
        with servers.prometheus(tmp_path, config) as prometheus:
            for job in ("roce", "tls"):
                wait_until(lambda: prometheus.query(f'up{{job="{job}"}} == 1'))  # noqa: B023
                rate = f'rate(roce_cnp_sent_total{{job="{job}"}}[30s])'
                joined = f"{rate} * on (instance, device) group_left (firmware) roce_device_info"
                wait_until(lambda: prometheus.query(joined))  # noqa: B023
            for query in (
                "rate(roce_ecn_marked_packets_total[30s]) > 0",
                "roce_port_up == 1",
                "roce_exporter_source_up == 1",
                "process_cpu_seconds_total > 0",
                "count(count by (job) (roce_exporter_build_info)) == 2",
            ):
                wait_until(lambda: prometheus.query(query))  # noqa: B023 - asked at once
        assert plain.stop() == 0


def test_sigterm_ends_it_while_a_read_is_stuck(tmp_path) -> None:
    tree = HostTree(tmp_path, devices=2)
    tree.replace(tree.hw_counter("mlx5_1", "np_cnp_sent"), fifo=True)
    flags = ("--metrics.set=full", f"--path.sysfs={tmp_path}", "--collect.timeout=0.3")
    with servers.exporter(tmp_path / "daemon", *flags) as exporter:
        assert b'roce_exporter_source_up{source="hw_counters",device="mlx5_1"} 0' in exporter.get()
        assert exporter.stop() == 0, "the read never ends; on an idle machine this takes one second"
