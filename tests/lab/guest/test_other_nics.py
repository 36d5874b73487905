"""Network cards of QEMU and of the kernel itself, as ports of Soft-RoCE devices: odd names, errors, no counters."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon import Exporter, about, value
from nic import run

DRIVERS = ("virtio_net", "e1000e", "vmxnet3", "veth")


def driver_of(netdev: Path) -> str:
    return (netdev / "device/driver").resolve().name if (netdev / "device/driver").exists() else ""


@pytest.fixture(scope="module")
def told() -> Iterator[tuple[Exporter, dict[str, str]]]:
    """An exporter, and the network device below each Soft-RoCE device."""
    run("modprobe", "-a", "rdma_rxe", "virtio_net", "e1000e", "vmxnet3")
    run("ip", "link", "add", "wire0", "type", "veth", "peer", "name", "wire1")
    netdevs = {driver_of(place): place.name for place in Path("/sys/class/net").iterdir()} | {"veth": "wire0"}
    below = {f"rxe_{driver}": netdevs[driver] for driver in DRIVERS if driver in netdevs}
    for device, netdev in below.items():
        run("ip", "link", "set", netdev, "up")
        run("rdma", "link", "add", device, "type", "rxe", "netdev", netdev)
    made = Exporter("--sampler.mode=fixed")
    yield made, below
    assert made.stop() == 0
    assert "Traceback" not in made.log.read_text()
    for device in below:
        run("rdma", "link", "del", device)
    run("ip", "link", "del", "wire0")


def test_all_of_them_are_present(told) -> None:
    """run.sh gives the guest these cards; without one of them the other tests would prove less than their names say."""
    assert set(told[1]) == {f"rxe_{driver}" for driver in DRIVERS}


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_card_is_exported_without_a_failure(told, driver) -> None:
    exporter, below = told
    device, netdev = f"rxe_{driver}", below[f"rxe_{driver}"]
    samples = exporter.scrape()
    assert value(samples, "roce_port_info", device=device, netdev=netdev) == 1
    down = [
        series for series, number in about(samples, device).items() if "source_up" in series and number == 0
    ]
    assert down == []
    assert value(samples, "roce_pfc_enabled", device=device, priority="3") is None, (
        "no DCB here: absent, not zero"
    )


def test_no_value_is_invented(told) -> None:
    """Cards without pause counters have no pause series; a 0 would be wrong."""
    for device in told[1]:
        assert not [
            series for series in about(told[0].scrape(), device) if series.startswith("roce_pfc_receive")
        ]
