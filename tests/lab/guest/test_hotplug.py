"""Devices come, go and are renamed while the exporter serves; namespaces hide them."""

import threading
import time
from collections.abc import Iterator

import nic
import pytest
from daemon import COMMAND, Exporter, about, parse, value, wait_until

TIMES = 6


@pytest.fixture
def pair() -> Iterator[None]:
    """Two devices; the module and all devices are removed after the test."""
    nic.load("mlx5,bnxt")
    nic.nics()["bnxt_re0"].table("rdma").set({"max_retry_exceeded": 77})
    yield
    nic.unload()


@pytest.fixture
def served(pair) -> Iterator[Exporter]:
    made = Exporter("--collect.timeout=3")
    yield made
    assert made.stop() == 0
    assert "level=error" not in made.log.read_text(), made.log.read_text()


def has(samples: dict[str, float], device: str) -> bool:
    return value(samples, "roce_device_info", device=device) is not None


def test_a_device_that_comes_and_goes_once_a_second_is_followed(served) -> None:
    """Each scrape has the present devices, and the permanent one never misses a value. The verdict on a device outlives it."""
    for _ in range(TIMES):
        begun = time.monotonic()
        nic.order("remove", "0")
        samples = served.scrape()
        assert not about(samples, "mlx5_0").keys() - {
            series
            for series in samples
            if series.startswith(("roce_exporter_", "roce_pfc_", "roce_port_health"))
        }
        assert value(samples, "roce_transport_retries_exceeded_total", device="bnxt_re0") == 77
        nic.order("add", "mlx5")
        card = nic.nics()["mlx5_0"]
        nic.run("ip", "link", "set", card.netdevs[0], "up")
        card.table("rdma").set({"np_cnp_sent": 5})
        wait_until(lambda: value(served.scrape(), "roce_cnp_sent_total", device="mlx5_0") == 5)
        time.sleep(max(0.0, 1 - (time.monotonic() - begun)))


def test_scrapes_during_changes_are_all_answered(served) -> None:
    stop = threading.Event()
    failed: list[BaseException] = []

    def scrape() -> None:
        while not stop.is_set():
            try:
                assert (
                    value(served.scrape(), "roce_transport_retries_exceeded_total", device="bnxt_re0") == 77
                )
            except BaseException as error:  # noqa: BLE001 - carried to the test
                failed.append(error)
                return

    threads = [threading.Thread(target=scrape) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(TIMES):
        nic.order("remove", "0")
        nic.order("add", "mlx5")
    stop.set()
    for thread in threads:
        thread.join()
    assert failed == []


def test_renamed_devices_are_exported_by_their_new_names(served) -> None:
    card = nic.nics()["mlx5_0"]
    card.leg("ethtool").set({"rx_prio3_pause": 12})
    nic.run("rdma", "dev", "set", "mlx5_0", "name", "rocep1s0")
    nic.run("ip", "link", "set", card.netdevs[0], "down")
    nic.run("ip", "link", "set", card.netdevs[0], "name", "ens1")
    nic.run("ip", "link", "set", "ens1", "up")
    renamed = wait_until(
        lambda: (
            value(
                samples := served.scrape(), "roce_pfc_receive_frames_total", device="rocep1s0", netdev="ens1"
            )
            == 12
            and samples
        )
    )
    assert not has(renamed, "mlx5_0")
    assert value(renamed, "roce_port_netdev_info", device="rocep1s0", netdev="ens1") == 1


def test_the_module_may_be_unloaded_under_it(pair) -> None:
    exporter = Exporter("--sampler.mode=fixed")
    nic.unload()
    samples = exporter.scrape()
    assert value(samples, "roce_exporter_devices") == 0
    nic.load("mlx5,bnxt")
    wait_until(lambda: value(exporter.scrape(), "roce_exporter_devices") == 2)
    assert exporter.stop() == 0


def once(*through: str) -> dict[str, float]:
    """One exposition of an exporter that is started in another environment."""
    return parse(nic.run(*through, COMMAND, "once", "--metrics.set=full"))


OWN_NETWORK = ("unshare", "--net", "--mount", "sh", "-c", 'mount -t sysfs sys /sys && exec "$@"', "sh")
"""As a pod without the host's network: a new network namespace with its own sysfs."""


def test_in_a_network_namespace_rdma_netlink_still_works(pair) -> None:
    """Hardware counters by netlink remain, and a metric reports that network devices are hidden."""
    samples = once(*OWN_NETWORK)
    assert value(samples, "roce_transport_retries_exceeded_total", device="bnxt_re0") == 77
    assert value(samples, "roce_exporter_ports_without_netdev") == 2
    assert not [series for series in samples if series.startswith("roce_pfc_")]
