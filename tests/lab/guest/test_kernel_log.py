"""The kernel log of a real kernel: lines by `dev_err` and `netdev_info`, an overrun, a restart, and who may read it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import nic
import pytest
from daemon import NOBODY, Exporter, get, parse, value, wait_until

UNPLUGGED = "Port module event: module 0, Cable unplugged"
HEALTH = "poll_health:801:(pid 0): device's health compromised - reached miss count"
TIMEOUT = "wait_func:1186:(pid 44): ACCESS_REG(0x805) timeout. Will cause a leak of a command resource"
RESTRICT = Path("/proc/sys/kernel/dmesg_restrict")
SYSLOG = (
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--inh-caps=-all,+syslog",
    "--ambient-caps=-all,+syslog",
    "--bounding-set=-all,+syslog",
    "--no-new-privs",
)
"""The user of the service with the drop-in for the kernel log."""
FLOOD = 8_000
"""Lines: more than the log of any kernel of Debian holds."""


@pytest.fixture(scope="module")
def pair() -> Iterator[dict[str, nic.Nic]]:
    before = RESTRICT.read_text()
    RESTRICT.write_text("1")
    nic.load("mlx5,bnxt")
    yield nic.nics()
    nic.unload()
    RESTRICT.write_text(before)


@pytest.fixture
def served(pair) -> Iterator[Exporter]:
    pair["mlx5_0"].log("err", UNPLUGGED)  # an old message
    made = Exporter("--sampler.mode=off", through=SYSLOG)
    wait_until(lambda: counted(made, "mlx5_0", "module_unplugged") is not None)
    yield made
    assert made.stop() == 0
    assert "level=error" not in made.log.read_text(), made.log.read_text()


def counted(exporter: Exporter, device: str, event: str) -> float | None:
    """How often the event was counted so far."""
    return value(exporter.scrape(), "roce_kernel_log_events_total", device=device, event=event)


def lost(exporter: Exporter) -> float:
    return value(exporter.scrape(), "roce_kernel_log_lost_total") or 0


def descriptors(exporter: Exporter) -> list[str]:
    """The paths of open kernel logs."""
    folder = Path(f"/proc/{exporter.process.pid}/fd")
    links = [os.readlink(entry) for entry in folder.iterdir() if entry.is_symlink()]
    return [link for link in links if link == "/dev/kmsg"]


def test_lines_of_a_driver_are_counted_for_the_device_that_they_name(served, pair) -> None:
    """Of mlx5 by the address of its function, of bnxt by its network device; old lines and lines of processes do not count."""
    assert counted(served, "mlx5_0", "module_unplugged") == 0, "the line from before the start"
    assert value(served.scrape(), "roce_kernel_log_readable") == 1
    netdev = pair["bnxt_re0"].netdevs[0]
    log = Path("/dev/kmsg")
    forged = f"<3>mlx5_core mlx5_core.{pair['mlx5_0'].number}: {UNPLUGGED}"
    descriptor = os.open(log, os.O_WRONLY)
    os.write(descriptor, forged.encode())
    os.close(descriptor)
    assert forged[3:] in nic.run("dmesg"), "root has written the same text"
    for text in (HEALTH, TIMEOUT, TIMEOUT, UNPLUGGED, "a message without a meaning"):
        pair["mlx5_0"].log("err", text)
    pair["bnxt_re0"].log("net", "NIC Link is Down")
    assert f"{netdev}: NIC Link is Down" in nic.run("dmesg")
    wait_until(lambda: counted(served, "bnxt_re0", "link_down") == 1)
    assert counted(served, "mlx5_0", "module_unplugged") == 1
    assert counted(served, "mlx5_0", "firmware_fatal") == 1
    assert counted(served, "mlx5_0", "command_timeout") == 2
    assert counted(served, "bnxt_re0", "firmware_fatal") == 0
    assert lost(served) == 0
    assert len(descriptors(served)) == 1


def test_lines_that_are_overwritten_are_counted_as_lost(served, pair) -> None:
    """The exporter is stopped while the log is written to several times its size."""
    card = pair["mlx5_0"]
    card.log("err", HEALTH)
    wait_until(lambda: counted(served, "mlx5_0", "firmware_fatal") == 1)
    nic.run("dmesg", "--console-off")
    os.kill(served.process.pid, signal.SIGSTOP)
    descriptor = os.open(nic.CONTROL / str(card.number) / "log", os.O_WRONLY)
    try:
        for _ in range(FLOOD):
            os.write(descriptor, b"info a line of the flood that means nothing and is as long as others")
        os.write(descriptor, f"err {UNPLUGGED}".encode())
    finally:
        os.close(descriptor)
        os.kill(served.process.pid, signal.SIGCONT)
        nic.run("dmesg", "--console-on")
    wait_until(lambda: counted(served, "mlx5_0", "module_unplugged") == 1)
    left = len([line for line in nic.run("dmesg").splitlines() if "line of the flood" in line])
    missing = lost(served)
    # Lines of the kernel itself may come between.
    assert 0 <= missing - (FLOOD - left) <= 20, (missing, left)
    assert value(served.scrape(), "roce_exporter_source_up", source="kernel_log") == 1


def test_a_device_that_is_removed_and_returns_keeps_its_counts(served, pair) -> None:
    """A message may come after its device has gone."""
    nic.order("remove", str(pair["mlx5_0"].number))
    wait_until(lambda: value(served.scrape(), "roce_exporter_devices") == 1)
    pair["bnxt_re0"].log("net", "NIC Link is Down")
    wait_until(lambda: counted(served, "bnxt_re0", "link_down") == 1)
    assert counted(served, "mlx5_0", "module_unplugged") == 0
    nic.order("add", "mlx5")
    back = nic.nics()["mlx5_0"]
    pair["mlx5_0"] = back
    wait_until(lambda: value(served.scrape(), "roce_exporter_devices") == 2)
    back.log("err", UNPLUGGED)
    wait_until(lambda: counted(served, "mlx5_0", "module_unplugged") == 1)


def test_without_the_privilege_a_metric_says_so_and_with_dmesg_restrict_0_none_is_needed(pair) -> None:
    made = Exporter("--sampler.mode=off", through=NOBODY)
    try:
        wait_until(lambda: value(made.scrape(), "roce_kernel_log_readable") == 0)
        samples = parse(get(f"http://{made.address}/metrics"))
        assert value(samples, "roce_exporter_source_up", source="kernel_log") is None
        assert not [series for series in samples if series.startswith("roce_kernel_log_events")]
        assert "CAP_SYSLOG" in made.log.read_text()
        RESTRICT.write_text("0")
        wait_until(lambda: counted(made, "mlx5_0", "module_unplugged") == 0)
        pair["mlx5_0"].log("err", UNPLUGGED)
        wait_until(lambda: counted(made, "mlx5_0", "module_unplugged") == 1)
        assert value(made.scrape(), "roce_kernel_log_readable") == 1
    finally:
        RESTRICT.write_text("1")
        assert made.stop() == 0
