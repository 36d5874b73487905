"""Settings are read at long intervals outside the scrape; missing files are absent, a failure costs only its own value."""

import errno
from pathlib import Path

import pytest
from host_tree import failing_pread
from kernel import Faults

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.sources.configuration import (
    MLX5_DEBUGFS,
    OFED,
    UNITS,
    configuration_reader,
    parse_number,
    parse_traffic_class,
    parse_trust,
    parse_version,
)
from roce_exporter.model import Device, Netdev, Port, Reading
from roce_exporter.model.values import EMPTY, GARBAGE, OUT_OF_RANGE

PORT = Port(1, "Ethernet", (Netdev("eth0", "port"),))
MLX5 = Device("mlx5_0", "mlx5_core", "mlx5", pci="0000:3b:00.0", ports=(PORT,))


@pytest.fixture
def sys(tmp_path) -> Path:
    """A folder that represents /sys, with a /proc next to it."""
    (tmp_path / "sys").mkdir()
    return tmp_path / "sys"


def write(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"{text}\n" if text else "")


def told(readings: tuple[Reading, ...]) -> dict[tuple[int, str, str], int | None]:
    return {
        (reading.port, reading.netdev, name): value
        for reading in readings
        for name, value in zip(reading.names, reading.values, strict=True)
    }


def lost(readings: tuple[Reading, ...]) -> dict[str, str]:
    return {loss.name: loss.reason for reading in readings for loss in reading.losses}


def read(root: Path, device: Device = MLX5, now: float = 0.0) -> tuple[Reading, ...]:
    return configuration_reader(LiveKernel(str(root)), device).read(now)


CM = "kernel/config/rdma_cm/mlx5_0/ports/1"


def test_every_value_belongs_to_its_port_or_network_device(sys) -> None:
    write(
        sys,
        {
            "class/infiniband/mlx5_0/tc/1/traffic_class": "Global tclass=106",
            f"{CM}/default_roce_tos": "104",
            f"{CM}/default_roce_mode": "IB/RoCE v1",
            "class/net/eth0/ecn/roce_np/enable/3": "1",
            "class/net/eth0/ecn/roce_np/cnp_dscp": "48",
            "class/net/eth0/ecn/roce_rp/rpg_time_reset": "300",
            "class/net/eth0/qos/trust": "dscp",
            "../proc/sys/net/ipv4/tcp_ecn": "2",
        },
    )
    assert told(read(sys)) == {
        (1, "", "traffic_class_forced"): 1,
        (1, "", "traffic_class"): 106,
        (1, "", "cm_tos"): 104,
        (1, "", "cm_roce_version"): 1,
        (1, "eth0", "notification_enabled_3"): 1,
        (1, "eth0", "np.cnp_dscp.one"): 48,
        (1, "eth0", "rp.time_reset_seconds.us"): 300,
        (1, "eth0", "trust_dscp"): 1,
        (0, "", "tcp_ecn"): 2,
    }


def test_an_empty_traffic_class_means_not_forced_and_a_missing_one_is_absent(sys) -> None:
    write(sys, {"class/infiniband/mlx5_0/tc/1/traffic_class": ""})
    assert told(read(sys)) == {(1, "", "traffic_class_forced"): 0}
    (sys / "class/infiniband/mlx5_0/tc/1/traffic_class").unlink()
    with pytest.raises(Absent):
        read(sys)


def test_rules_for_some_connections_are_no_global_traffic_class(sys) -> None:
    write(sys, {"class/infiniband/mlx5_0/tc/1/traffic_class": "src_ip=192.0.2.1,tclass=96"})
    assert (1, "", "traffic_class") not in told(read(sys))
    write(
        sys, {"class/infiniband/mlx5_0/tc/1/traffic_class": "src_ip=192.0.2.1,tclass=96\nGlobal tclass=106"}
    )
    assert told(read(sys))[1, "", "traffic_class"] == 106


def test_an_empty_file_of_ofed_is_an_error_and_not_zero(sys) -> None:
    write(sys, {"class/net/eth0/ecn/roce_rp/enable/3": "", "class/net/eth0/ecn/roce_rp/enable/4": "0"})
    readings = read(sys)
    assert told(readings)[1, "eth0", "reaction_enabled_3"] is None
    assert told(readings)[1, "eth0", "reaction_enabled_4"] == 0
    assert lost(readings) == {"reaction_enabled_3": EMPTY}


def test_a_file_that_fails_costs_its_own_value(sys) -> None:
    write(sys, {f"{CM}/default_roce_tos": "106", f"{CM}/default_roce_mode": "RoCE v2"})
    kernel = LiveKernel(str(sys), failing_pread({"default_roce_tos": errno.EIO}))
    readings = configuration_reader(kernel, MLX5).read(0.0)
    assert told(readings)[1, "", "cm_roce_version"] == 2
    assert lost(readings) == {"cm_tos": "EIO"}


def test_debugfs_has_values_that_ofed_lacks(sys) -> None:
    place = "kernel/debug/mlx5/0000:3b:00.0/cc_params"
    write(sys, {f"{place}/np_cnp_dscp": "0x30", f"{place}/rp_time_reset": "300", f"{place}/unknown": "1"})
    found = told(read(sys))
    assert found[1, "eth0", "np.cnp_dscp.one"] == 48
    assert found[1, "eth0", "rp.time_reset_seconds.us"] == 300
    write(sys, {"class/net/eth0/ecn/roce_np/cnp_dscp": "46"})
    found = told(read(sys))
    assert found[1, "eth0", "np.cnp_dscp.one"] == 46, "one read is enough: it costs commands"
    assert (1, "eth0", "rp.time_reset_seconds.us") not in found


def test_the_parameters_of_mlx5_have_one_name_in_debugfs_and_ofed() -> None:
    ofed = {name for names in OFED.values() for name in names.values()}
    assert ofed <= set(MLX5_DEBUGFS.values())
    assert {name.rpartition(".")[2] for name in MLX5_DEBUGFS.values()} <= set(UNITS)
    assert OFED["roce_rp"]["rpg_ai_rate"] == MLX5_DEBUGFS["rp_ai_rate"]
    assert OFED["roce_rp"]["rate_to_set_on_first_cnp"] == MLX5_DEBUGFS["rp_rate_to_set_on_first_cnp"]
    assert OFED["roce_rp"]["clamp_tgt_rate_after_time_inc"] == MLX5_DEBUGFS["rp_clamp_tgt_rate_ati"]


def test_bnxt_is_read_in_debugfs_or_configfs_but_never_its_transmit_queue(sys) -> None:
    bnxt = Device("bnxt_re0", "bnxt_en", "bnxt_re", pci="0000:31:00.0", ports=(PORT,))
    write(sys, {"kernel/config/bnxt_re/bnxt_re0/ports/1/cc/cnp_dscp": "0x30"})
    write(sys, {"kernel/config/bnxt_re/bnxt_re0/ports/1/cc/advanced": "a table"})
    assert told(read(sys, bnxt)) == {(1, "eth0", "np.cnp_dscp.one"): 48}
    write(sys, {"kernel/debug/bnxt_re/0000:31:00.0/cc_config/enable_cc": "1"})
    write(sys, {"kernel/debug/bnxt_re/0000:31:00.0/cc_config/tx_queue": "1"})
    assert told(read(sys, bnxt)) == {(1, "eth0", "cc.enabled.one"): 1}


def test_irdma_hns_and_ionic_are_read_for_all_their_settings(sys) -> None:
    write(sys, {"kernel/config/irdma/mlx5_0/roce_dcqcn_enable": "1"})
    write(sys, {"class/infiniband/mlx5_0/ports/1/dcqcn_cc_param/ai": "14"})
    write(sys, {"class/infiniband/mlx5_0/ports/1/dcqcn_cc_param/lifespan": "10"})
    write(sys, {"class/infiniband/mlx5_0/dcqcn/profiles/1/roce_np/cnp_dscp": "46"})
    write(sys, {"class/infiniband/mlx5_0/dcqcn/profiles/2/roce_np/cnp_dscp": "48"})
    write(sys, {"class/infiniband/mlx5_0/dcqcn/match_default": "2"})
    assert told(read(sys)) == {
        (1, "eth0", "cc.roce_dcqcn_enable.one"): 1,
        (1, "eth0", "cc.ai.one"): 14,
        (1, "eth0", "np.cnp_dscp.one"): 48,
    }
    (sys / "class/infiniband/mlx5_0/dcqcn/match_default").unlink()
    assert told(read(sys))[1, "eth0", "np.cnp_dscp.one"] == 46


def test_without_the_right_to_read_them_settings_are_absent_and_not_broken(sys) -> None:
    """The errors that an unprivileged user gets from debugfs and configfs."""

    def refuse(path: str, *_: object) -> None:
        if path.startswith("kernel/"):
            raise PermissionError(errno.EACCES, "Permission denied", path)

    kernel = LiveKernel(str(sys))
    Faults(kernel, entries=refuse, text=refuse)
    with pytest.raises(Absent):
        configuration_reader(kernel, MLX5).read(0.0)
    write(sys, {"../proc/sys/net/ipv4/tcp_ecn": "1", f"{CM}/default_roce_tos": "106"})
    readings = configuration_reader(kernel, MLX5).read(0.0)
    assert told(readings) == {(0, "", "tcp_ecn"): 1}
    assert lost(readings) == {}


def test_a_read_that_fails_is_reported_and_tried_again(sys) -> None:
    write(sys, {f"{CM}/default_roce_tos": "106"})
    kernel = LiveKernel(str(sys))
    faults = Faults(kernel)
    source = configuration_reader(kernel, MLX5)
    source.read(0.0)
    faults["entries"] = OSError(errno.EIO, "Input/output error")
    with pytest.raises(OSError, match="Input/output error"):
        source.read(60.0)
    faults.clear()
    assert told(source.read(120.0))[1, "", "cm_tos"] == 106


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("48\n", 48),
        ("0x30", 48),
        ("1 (on)", GARBAGE),
        ("0xg", GARBAGE),
        ("-1", GARBAGE),
        ("", EMPTY),
        ("9" * 4000, OUT_OF_RANGE),
        ("0x" + "f" * 4000, OUT_OF_RANGE),
    ],
)
def test_numbers_are_decimal_or_hexadecimal(text, expected) -> None:
    assert parse_number(text) == expected


def test_keywords_are_those_of_the_kernel() -> None:
    assert parse_version("RoCE v3") == GARBAGE
    assert parse_trust("pcp") == 0
    assert parse_trust("") == EMPTY
    assert parse_traffic_class("Global tclass=x") == GARBAGE
