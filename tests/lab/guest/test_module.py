"""rocelab itself: it can be loaded, controlled and unloaded safely, also under load."""

from __future__ import annotations

import errno
import os
import subprocess
import threading
from pathlib import Path

import nic
import pytest

ROUNDS = int(os.environ.get("ROCELAB_ROUNDS", "25"))
"""How often devices are created and removed, and the module loaded and unloaded; run.sh --all uses a thousand."""


@pytest.fixture
def loaded() -> None:
    """The module with one mlx5, unloaded afterwards unless the test did that."""
    nic.load("mlx5")
    yield
    if Path("/sys/module/rocelab").exists():
        nic.unload()


@pytest.mark.timeout(900)
def test_it_survives_rounds_of_loading() -> None:
    for _ in range(ROUNDS):
        nic.run("insmod", nic.MODULE, "devices=mlx5,bnxt/2")
        nic.run("rmmod", "rocelab")
    assert not Path("/sys/module/rocelab").exists()


def test_it_survives_rounds_of_adding(loaded: None) -> None:
    for _ in range(ROUNDS):
        nic.order("add", "ionic")
        nic.order("remove", "1")
    assert set(nic.nics()) == {"mlx5_0"}


def test_there_may_be_twelve(loaded: None) -> None:
    for _ in range(11):
        nic.order("add", "ice")
    assert len(nic.nics()) == 12
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        nic.order("add", "ice")


@pytest.mark.parametrize(
    ("table", "file", "text", "number"),
    [
        ("rdma", "values", "no_such_counter 1", errno.ENOENT),
        ("rdma", "values", "np_cnp_sent one", errno.EINVAL),
        ("rdma", "values", "np_cnp_sent", errno.EINVAL),
        ("rdma", "fault", "EWHAT", errno.EINVAL),
        ("rdma", "fault", "no_such_counter EIO", errno.ENOENT),
    ],
)
def test_a_wrong_word_is_refused(loaded: None, table: str, file: str, text: str, number: int) -> None:
    card = nic.nics()["mlx5_0"]
    with pytest.raises(OSError) as refused:  # noqa: PT011 - the errno is compared
        card.table(table).write(file, text)
    assert refused.value.errno == number


def test_a_write_with_a_wrong_line_changes_nothing(loaded: None) -> None:
    table = nic.nics()["mlx5_0"].table("rdma")
    table.set({"np_cnp_sent": 1})
    with pytest.raises(OSError, match=os.strerror(errno.ENOENT)):
        table.set({"np_cnp_sent": 2, "no_such_counter": 3})
    assert table.values()["np_cnp_sent"] == 1


@pytest.mark.parametrize("devices", ["nobody", "mlx5/3", "mlx5/0", ",".join(["mlx5"] * 13)])
def test_a_wrong_device_is_refused_at_loading(devices: str) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        nic.run("insmod", nic.MODULE, f"devices={devices}")
    assert not Path("/sys/module/rocelab").exists()


def keep_reading(stop: threading.Event, command: tuple[str, ...]) -> None:
    while not stop.is_set():
        subprocess.run(command, capture_output=True, check=False)


READERS = (
    ("ethtool", "-S", "roce0"),
    ("ethtool", "-I", "-a", "roce0"),
    ("rdma", "statistic", "show"),
    ("dcb", "-s", "pfc", "show", "dev", "roce0"),
    ("sh", "-c", "cat /sys/class/infiniband/mlx5_0/ports/1/*counters/*"),
)


def test_a_device_may_go_under_load(loaded: None) -> None:
    stop = threading.Event()
    readers = [threading.Thread(target=keep_reading, args=(stop, command)) for command in READERS]
    for reader in readers:
        reader.start()
    for _ in range(max(3, ROUNDS // 5)):
        nic.order("remove", "0")
        nic.order("add", "mlx5")
    stop.set()
    for reader in readers:
        reader.join()
    assert set(nic.nics()) == {"mlx5_0"}


def test_queues_may_come_and_go_while_they_are_read(loaded: None) -> None:
    stop = threading.Event()
    reader = threading.Thread(target=keep_reading, args=(stop, READERS[0]))
    reader.start()
    for queues in (1, 16, 4, 9) * 5:
        nic.run("ethtool", "-L", "roce0", "combined", str(queues))
    stop.set()
    reader.join()
    lines = nic.run("ethtool", "-S", "roce0")
    assert "rx8_packets" in lines
    assert "rx9_packets" not in lines


@pytest.mark.parametrize("table", ["rdma", "leg0/ethtool", "leg0/dcb"])
def test_a_hang_ends_when_the_device_goes(loaded: None, table: str) -> None:
    card = nic.nics()["mlx5_0"]
    command = {"rdma": READERS[2], "leg0/ethtool": READERS[0], "leg0/dcb": READERS[3]}[table]
    before = card.table(table).queries()
    card.table(table).break_with("hang")
    asking = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while card.table(table).queries() == before:
        pass
    nic.order("remove", "0")
    asking.wait(timeout=60)


def test_the_bnxt_copy_is_a_second_old(loaded: None) -> None:
    """Values are those at the start of the last whole second, as with firmware that writes them once a second."""
    nic.order("add", "bnxt")
    card = nic.nics()["bnxt_re0"]
    table = card.leg("ethtool")
    table.write("refresh_ms", "3600000")
    table.set({"rx_pfc_frames": 5})
    read = Path("/sys/kernel/debug/rocelab/1/leg0/ethtool/values").read_text()
    assert "rx_pfc_frames 5" in read
    assert "rx_pfc_frames: 0" in nic.run("ethtool", "-S", card.netdevs[0])
    table.write("refresh_ms", "1")
    nic.run("ethtool", "-S", card.netdevs[0])
    assert "rx_pfc_frames: 5" in nic.run("ethtool", "-S", card.netdevs[0])
