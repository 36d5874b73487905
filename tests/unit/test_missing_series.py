"""`explain` names the reason why a metric has no series on this host, and why /metrics does not show one that it has."""

import pytest
from recorded import recording

from roce_exporter.catalog import CATALOG, INDEX
from roce_exporter.cli import main
from roce_exporter.introspection.explain import HostStates, why_missing
from roce_exporter.model import SourceState

QUIET = ("--host.simulate=quiet", "--host.simulate-ports=mlx5")
BROKEN = ("--host.simulate=broken",)
RECORDED = (f"--host.recording={recording('mlx5-lag')}",)


@pytest.mark.parametrize(
    ("name", "host", "reason"),
    [
        ("roce_config_rdma_mtu_bytes", QUIET, "now roce_config_rdma_mtu_bytes{"),
        ("roce_cnp_sent_total", QUIET, "now roce_cnp_sent_total{"),
        ("roce_delay_drop_timeouts_total", QUIET, "it needs access to /sys/kernel/debug"),
        (
            "roce_transceiver_temperature_celsius",
            QUIET,
            "no interface for the source transceiver; it needs CAP_NET_ADMIN",
        ),
        (
            "roce_owner_queue_pairs",
            (*QUIET, "--source.disable=owners"),
            "owners is disabled (--source.disable)",
        ),
        ("roce_phy_fec_codeword_errors", BROKEN, "mlx5_1: the source fec fails: EIO"),
        ("roce_pfc_storm_hint", QUIET, "nothing yet: no storm"),
        ("roce_pfc_storms_total", RECORDED, "the fast loop is off: it needs a host that is no recording"),
        ("roce_owner_device_info", QUIET, "it needs --kubelet.pod-resources"),
        ("roce_namespace_objects", QUIET, "it needs a live host, and --rdma.namespaces"),
        ("roce_switch_info", QUIET, "not a metric of hosts: the service of switches"),
        ("roce_wire_packets_total", QUIET, "not a metric of hosts: the capture of packets"),
    ],
)
def test_a_metric_says_why_it_has_no_series(name, host, reason, capsys) -> None:
    assert main(["explain", name, *host, "--log.level=error"]) == 0
    assert reason in capsys.readouterr().out


def test_a_series_outside_the_default_set_is_marked(capsys) -> None:
    main(["explain", "roce_port_physical_state", *QUIET])
    assert "not served in the set standard: --metrics.set=full shows it" in capsys.readouterr().out


def test_a_metric_of_other_drivers_names_them(capsys) -> None:
    main(["explain", "roce_port_receive_data_packets_total", *QUIET])
    out = capsys.readouterr().out
    assert "the driver mlx5 (mlx5_0) does not have it; drivers that do: bnxt_re" in out


def test_a_host_without_devices_says_so() -> None:
    host = HostStates((), ())
    assert list(why_missing(INDEX.named["roce_cnp_sent_total"], host)) == [
        "this host has no RDMA device, or all are excluded"
    ]


@pytest.mark.parametrize("up", [True, False, None])
def test_every_metric_without_a_raw_name_has_a_reason(up) -> None:
    names = ("owners", "health", "kernel_log", "pod_resources", "rdma_namespaces")
    states = [SourceState(name, "", "", up, 0.0, "EIO" * (up is False)) for name in names]
    for row in CATALOG:
        if not row.spellings:
            assert list(why_missing(row, HostStates((), states)))
