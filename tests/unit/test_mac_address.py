"""Which address identifies a network device to the switch: the rule, its three kinds of hosts, the series, the cost."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from observed import observe, samples

from roce_exporter.catalog import INDEX
from roce_exporter.collect import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.kernel import Absent
from roce_exporter.kernel.live import LiveKernel
from roce_exporter.kernel.mac_address import LinkAddresses, choose_mac_address
from roce_exporter.recording.moment import Moment
from roce_exporter.recording.recorded import RecordedKernel, load_recording
from roce_exporter.recording.tree import Tree
from roce_exporter.simulation.kernel import simulate
from roce_exporter.sources.netdev import MAC_ADDRESS
from roce_exporter.sources.netdev_identity import read_netdev_identity

OWN, BEFORE, CURRENT = "02:00:5e:00:00:01", "02:00:5e:00:00:02", "02:00:5e:00:00:03"
NO_MAC = "00:00:00:00:00:00"
INFINIBAND = "80:00:02:08:fe:80:00:00:00:00:00:00:f4:52:14:03:00:7b:cb:a1"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (LinkAddresses(OWN, "", CURRENT, borrowed=False), OWN),
        (LinkAddresses(OWN, BEFORE, CURRENT, borrowed=True), OWN),
        (LinkAddresses("", "", CURRENT, borrowed=False), CURRENT),
        (LinkAddresses("", BEFORE, CURRENT, borrowed=True), BEFORE),
        (LinkAddresses(NO_MAC, "", CURRENT, borrowed=False), CURRENT),
        (LinkAddresses("not set", "", CURRENT, borrowed=False), CURRENT),
        (LinkAddresses("02:00:5E:00:00:AB", "", "", borrowed=False), "02:00:5e:00:00:ab"),
    ],
)
def test_the_address_that_no_setting_changes_is_chosen(found: LinkAddresses, expected: str) -> None:
    assert choose_mac_address(found, "eth0") == expected


@pytest.mark.parametrize(
    "found",
    [
        LinkAddresses("", "", CURRENT, borrowed=True),
        LinkAddresses("", "", NO_MAC, borrowed=False),
        LinkAddresses("", "", "", borrowed=False),
        LinkAddresses(INFINIBAND, "", INFINIBAND, borrowed=False),
        LinkAddresses("02:00:5e:00:00", "", "02-00-5e-00-00-01", borrowed=False),
    ],
)
def test_an_address_of_another_device_or_of_another_kind_is_none(found: LinkAddresses) -> None:
    with pytest.raises(Absent, match="no Ethernet address of its own: 'eth0'"):
        choose_mac_address(found, "eth0")


def recorded(files: dict[str, str], links: dict[str, str] | None = None) -> RecordedKernel:
    tree = Tree({path: text.encode() for path, text in files.items()}, dict(links or {}))
    for path in (*tree.files, *tree.links):
        tree.add(path)
    return RecordedKernel([Moment(tree, {"link": ({"ifname": "mlx5_0", "port": 1, "netdev": "eth0"},)})])


# The three forms are those of ethtool 6.1 (`not set`) and of older versions (zeros).
@pytest.mark.parametrize("printed", ["not set", NO_MAC, INFINIBAND])
def test_a_recorded_device_without_permanent_address_has_its_current_one(printed: str) -> None:
    files = {
        "ethtool/eth0.permaddr": f"Permanent address: {printed}\n",
        "sys/class/net/eth0/address": f"{CURRENT}\n",
    }
    assert recorded(files).mac_address("eth0") == CURRENT


@pytest.mark.parametrize("shown_by", ["link", "list"])
def test_a_recorded_member_of_a_bond_does_not_have_the_address_of_the_bond(shown_by: str) -> None:
    files = {
        "ethtool/eth0.permaddr": "Permanent address: not set\n",
        "sys/class/net/eth0/address": f"{CURRENT}\n",
    }
    if shown_by == "list":
        files["sys/class/net/bond0/bonding/slaves"] = "eth1 eth0\n"
        kernel = recorded(files)
    else:
        kernel = recorded(files, {"sys/class/net/eth0/master": "../bond0"})
    with pytest.raises(Absent, match="no Ethernet address of its own"):
        kernel.mac_address("eth0")


def test_what_is_not_recorded_is_absent() -> None:
    kernel = recorded({"sys/class/net/eth0/address": f"{CURRENT}\n"})
    with pytest.raises(Absent, match=r"no ethtool/eth0\.permaddr in this recording"):
        kernel.mac_address("eth0")
    with pytest.raises(Absent):
        kernel.hostname()


@pytest.mark.parametrize(("text", "name"), [("gpu-1\n", "gpu-1"), ("gpu-1.example.com", "gpu-1.example.com")])
def test_the_host_name_of_a_recording(text: str, name: str) -> None:
    assert recorded({"proc/sys/kernel/hostname": text}).hostname() == name


@pytest.mark.parametrize("text", ["(none)\n", "", "\n"])
def test_a_host_whose_name_was_never_set_has_none(text: str) -> None:
    kernel = recorded(
        {"proc/sys/kernel/hostname": text, "ethtool/eth0.permaddr": f"Permanent address: {OWN}"}
    )
    with pytest.raises(Absent, match="the host has no name"):
        kernel.hostname()
    assert read_netdev_identity(kernel, "eth0") == {f"{OWN} ": 1}


def test_the_name_of_this_host_is_text_whatever_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert LiveKernel().hostname() == os.uname().nodename
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename=os.fsdecode(b"gpu\xff")))
    assert LiveKernel().hostname() == r"gpu\xff"


def series(found: dict[str, str]) -> list[str]:
    return [name for name in found if name.startswith("roce_netdev_info{")]


async def shown(kernel: RecordedKernel) -> dict[str, str]:
    exporter, (observation,) = await observe(kernel, 1)
    return samples(exporter.render(observation, Format.TEXT))


@pytest.mark.parametrize("hostname", ["gpu-1", "", "two words", 'a "quoted" one', "two\nlines", "Rechner-ä"])
async def test_any_host_name_is_one_label(hostname: str) -> None:
    files = {
        "ethtool/eth0.permaddr": f"Permanent address: {OWN}\n",
        "proc/sys/kernel/hostname": f"{hostname}\n",
    }
    found = await shown(recorded(files))
    escaped = hostname.replace('"', r"\"").replace("\n", r"\n")
    where = 'device="mlx5_0",port="1",netdev="eth0"'
    label = f',hostname="{escaped}"' if hostname else ""
    assert series(found) == [f'roce_netdev_info{{{where},mac="{OWN}"{label}}}']
    assert not [name for name in found if "unmapped" in name and found[name] != "0"]


async def test_a_lag_has_a_series_per_member_and_none_for_the_bond() -> None:
    found = await shown(load_recording(str(Path(__file__).parents[1] / "recordings/mlx5-lag")))
    assert [(name.split('"')[5], name.split('"')[7]) for name in series(found)] == [
        ("ens2f0np0", "02:00:5e:20:5e:00"),
        ("ens2f1np1", "02:00:5e:20:5e:01"),
    ]


async def test_a_network_device_of_another_namespace_has_no_series_and_is_no_failure() -> None:
    class Elsewhere(RecordedKernel):
        def mac_address(self, netdev: str) -> str:
            raise Absent(errno.ENODEV, os.strerror(errno.ENODEV), netdev)

    found = await shown(Elsewhere(recorded({"ethtool/eth0.stats": "  rx_packets: 1\n"}).moments))
    assert series(found) == []
    assert not [name for name in found if 'source="mac_address"' in name]


async def test_a_refused_read_costs_its_series_and_is_shown() -> None:
    class Refusing(RecordedKernel):
        def mac_address(self, netdev: str) -> str:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM), netdev)

    found = await shown(Refusing(recorded({"ethtool/eth0.stats": "  rx_prio3_pause: 1\n"}).moments))
    assert series(found) == []
    source = '{source="mac_address",device="mlx5_0",netdev="eth0"}'
    assert (found[f"roce_exporter_source_up{source}"], found[f"roce_exporter_read_errors_total{source}"]) == (
        "0",
        "1",
    )
    assert [name for name in found if "mlx5_0" in name and "exporter" not in name]


class Moved(RecordedKernel):
    """A host whose address changes, and whose rtnetlink may hang, as under a lock that a driver holds."""

    mac = OWN
    reads = 0
    hangs = False

    def __init__(self, files: dict[str, str]) -> None:
        super().__init__(recorded(files).moments)
        self.begun, self.gate = threading.Event(), threading.Event()

    def mac_address(self, netdev: str) -> str:
        self.reads += 1
        if self.hangs:
            self.begun.set()
            self.gate.wait()
        return self.mac


async def test_it_is_read_between_scrapes_and_a_change_is_a_new_series() -> None:
    """Only the first scrape of a device waits for it; a read that hangs later delays none and costs no other source."""
    now = [0.0]
    kernel = Moved({"ethtool/eth0.stats": "  rx_prio3_pause: 1\n"})
    collector = Collector(kernel, Settings(refresh=60.0), lambda: now[0])
    exporter = Exporter(collector)

    async def scrape() -> list[str]:
        return series(samples(exporter.render(await exporter.observe(), Format.TEXT)))

    try:
        for _ in range(5):
            (found,) = await scrape()
            assert f'mac="{OWN}"' in found
        assert kernel.reads == 1
        kernel.mac, kernel.hangs = CURRENT, True
        now[0] = 61.0
        await scrape()
        await asyncio.to_thread(kernel.begun.wait)
        (found,) = await scrape()
        assert f'mac="{OWN}"' in found, "the read hangs, and the scrape does not"
        kernel.gate.set()
        while f'mac="{OWN}"' in found:  # until the read has returned
            (found,) = await scrape()
        assert f'mac="{CURRENT}"' in found
    finally:
        kernel.gate.set()
        collector.close()


def test_simulated_hosts_differ_by_their_seed() -> None:
    """The scheme of `simulation.still`, so that a simulated switch can list them as its neighbours."""
    kernel = simulate("quiet", clock=lambda: 0.0, vendors=["mlx5-lag", "bnxt"], seed=300)
    assert kernel.hostname() == "gpu-300"
    assert [kernel.mac_address(f"eth{number}") for number in range(3)] == [
        "02:00:01:2c:00:00",
        "02:00:01:2c:00:01",
        "02:00:01:2c:00:02",
    ]
    assert simulate("quiet", clock=lambda: 0.0).hostname() == "gpu-001"
    for netdev in ("bond0", "eth9"):
        with pytest.raises(Absent):
            kernel.mac_address(netdev)


def test_no_other_raw_name_is_taken_for_an_address() -> None:
    row = INDEX.claimed("", MAC_ADDRESS, f"{OWN} gpu-1")
    assert row is not None
    assert row.name == "roce_netdev_info"
    for name in ("rx discards", f"{OWN}", f"{OWN[:-1]} gpu-1", f"{OWN}:00 gpu-1"):
        assert INDEX.claimed("", MAC_ADDRESS, name) is None


def test_pyroute2_is_loaded_by_the_first_read_of_a_live_address_only(tmp_path: Path) -> None:
    """It costs 9 MB and a tenth of a second: not for help, a recording, a simulation, or the sysfs of another host."""
    (tmp_path / "class/net/eth0").mkdir(parents=True)
    (tmp_path / "class/net/eth0/address").write_text(f"{OWN}\n")
    code = """
import sys
import roce_exporter.cli.entry, roce_exporter.cli.serve
from roce_exporter.kernel.live import LiveKernel
from roce_exporter.simulation.kernel import simulate
from roce_exporter.sources.netdev_identity import read_netdev_identity
print(read_netdev_identity(simulate("quiet", clock=lambda: 0.0), "eth0"))
try:
    LiveKernel(sys.argv[1]).mac_address("eth0")
except OSError as error:
    print(error.strerror, "pyroute2" in sys.modules)
"""
    told = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert told.stdout.splitlines() == [
        "{'02:00:00:01:00:00 gpu-001': 1}",
        "not a network device of this namespace False",
    ]
