"""The alerts that real traffic of Soft-RoCE causes on a bad wire, and that it does not cause on a good one.

A condition counts as soon as it is true: tests/alerts tests how long it must last. A silent peer is not tested here:
perftest requests 7 retries, for which rxe retries without limit, and it counts no timeouts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import traffic
from daemon import Exporter, wait_until
from monitoring import alerts, prometheus
from nic import run

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module", autouse=True)
def _watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Two Soft-RoCE devices, an exporter, and Prometheus with our rules."""
    traffic.bring_up()
    exporter = Exporter("--sampler.mode=off")
    with prometheus(tmp_path_factory.mktemp("prometheus"), exporter):
        yield
    assert exporter.stop() == 0
    traffic.take_down()


def about_traffic() -> set[tuple[str, str]]:
    return {(name, device) for name, device in alerts() if device in traffic.DEVICES}


def wait_for(name: str, device: str) -> None:
    wait_until(lambda: (name, device) in about_traffic(), 100)


def test_a_good_wire_is_no_alert() -> None:
    assert traffic.exchange("ib_write_bw", "-s", "4096", "-D", "8") == 0
    assert about_traffic() == set()


def test_packets_that_are_lost_are_one() -> None:
    """The rules judge no ratio below 1,000 packets per second of five minutes: messages of 256 packets have them soon."""
    with traffic.flowing("ib_write_bw", "-m", "256", "-s", "65536", "-D", "100"):
        traffic.lose(0, "0.5%")
        wait_for("RocePacketLoss", "rxe1")


def test_a_link_that_falls_is_one() -> None:
    run("ip", "link", "set", "veth1", "down")
    wait_for("RocePortDown", "rxe1")
    run("ip", "link", "set", "veth1", "up")
    traffic.route()
