"""Kernel reads that only the audit needs: the refresh interval of bnxt, and captures of settings."""

import ctypes
import struct

import pytest
from test_audit_source import CM, MLX5, write

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.ethtool_ioctl import GCOALESCE, EthtoolIoctl
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.recorded.ethtool_text import parse, print_values
from roce_exporter.host.sources.configuration import texts

REFRESH = "Coalesce parameters for eth0:\nAdaptive RX: off  TX: off\nstats-block-usecs:\t{}\nsample-interval:\tn/a\n"


@pytest.mark.parametrize("value", [0, 1_000_000])
def test_the_refresh_is_read_as_ethtool_prints_it(value) -> None:
    assert parse("settings", REFRESH.format(value)) == {"stats_block_microseconds": value}
    assert parse("settings", print_values("settings", {"stats_block_microseconds": value})) == {
        "stats_block_microseconds": value
    }


def test_a_driver_without_a_refresh_interval_has_no_value() -> None:
    assert parse("settings", REFRESH.format("n/a")) == {}


def test_the_refresh_is_the_tenth_word_of_struct_ethtool_coalesce() -> None:
    def ioctl(_: object, __: int, request: bytes) -> int:
        _, place = struct.unpack("16sP16x", request)
        words = (ctypes.c_uint32 * 23).from_address(place)
        assert words[0] == GCOALESCE
        words[1:] = list(range(1, 23))
        return 0

    assert EthtoolIoctl(ioctl).statistics_refresh("eth0") == 9


def test_a_capture_holds_the_files_that_were_read_and_none_of_the_addresses_in_rules(tmp_path) -> None:
    root = tmp_path / "sys"
    write(
        root,
        {
            "class/infiniband/mlx5_0/tc/1/traffic_class": "src_ip=192.0.2.1,tclass=96\nGlobal tclass=106",
            f"{CM}/default_roce_tos": "106",
            "../proc/sys/net/ipv4/tcp_ecn": "2",
            "class/net/eth0/ecn/roce_np/unknown": "1",
        },
    )
    assert texts(LiveKernel(str(root)), MLX5) == {
        "sys/class/infiniband/mlx5_0/tc/1/traffic_class": "Global tclass=106\n",
        f"sys/{CM}/default_roce_tos": "106\n",
        "proc/sys/net/ipv4/tcp_ecn": "2\n",
    }


class Door(LiveKernel):
    """A live kernel whose network device has this driver, and whose ethtool returns empty replies."""

    def __init__(self, driver: str, refresh: int) -> None:
        super().__init__()
        self._driver = driver
        self._refresh = refresh

    def ethtool_driver(self, netdev: str) -> str:
        return self._driver

    def _mine(self, kind: object, make: object = None) -> object:
        refresh = self._refresh

        class Answers:
            def pfc_prevention_timeout(self, netdev: str) -> int:
                raise Absent(0, "none", netdev)

            def private_flags(self, netdev: str) -> dict[str, bool]:
                return {"some": True}

            def statistics_refresh(self, netdev: str) -> int:
                return refresh

        return Answers()


def test_only_bnxt_is_queried_for_its_refresh_because_0_means_nothing_on_others() -> None:
    assert Door("bnxt_en", 0).ethtool_settings("eth0") == {"stats_block_microseconds": 0, "flag_some": 1}
    assert Door("mlx5_core", 0).ethtool_settings("eth0") == {"flag_some": 1}
