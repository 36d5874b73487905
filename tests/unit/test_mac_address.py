"""Which address identifies a network device to the switch: the rule, its three kinds of hosts, the series, the cost."""

import errno
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from clock import Clock
from kernel import Faults, host
from observed import exposition, samples
from waiting import Gate, until

from roce_exporter.catalog import INDEX
from roce_exporter.collect.collector import Collector, Settings
from roce_exporter.exporter import Exporter
from roce_exporter.exposition import Format
from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.kernel.rtnetlink import LinkAddresses, choose_mac_address
from roce_exporter.host.recorded.recorded import RecordedKernel
from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.host.sources.netdev import MAC_ADDRESS, read_netdev_identity

OWN, BEFORE, CURRENT = "02:00:5e:00:00:01", "02:00:5e:00:00:02", "02:00:5e:00:00:03"
NO_MAC = "00:00:00:00:00:00"
INFINIBAND = "80:00:02:08:fe:80:00:00:00:00:00:00:f4:52:14:03:00:7b:cb:a1"
LINK = {"rdma/link.json": [{"ifname": "mlx5_0", "port": 1, "netdev": "eth0"}]}
PERMANENT = "ethtool/eth0.permaddr"
BUSY = LINK | {"ethtool/eth0.stats": "  rx_prio3_pause: 1\n"}
UNSET = {PERMANENT: "Permanent address: not set\n", "sys/class/net/eth0/address": f"{CURRENT}\n"}


@pytest.mark.parametrize(
    ("permanent", "before", "current", "borrowed", "expected"),
    [
        (OWN, "", CURRENT, False, OWN),
        (OWN, BEFORE, CURRENT, True, OWN),
        ("", "", CURRENT, False, CURRENT),
        ("", BEFORE, CURRENT, True, BEFORE),
        (NO_MAC, "", CURRENT, False, CURRENT),
        ("not set", "", CURRENT, False, CURRENT),
        ("02:00:5E:00:00:AB", "", "", False, "02:00:5e:00:00:ab"),
        ("", "", CURRENT, True, None),
        ("", "", NO_MAC, False, None),
        (INFINIBAND, "", INFINIBAND, False, None),
        ("02:00:5e:00:00", "", "02-00-5e-00-00-01", False, None),
    ],
)
def test_the_address_that_no_setting_changes_is_chosen(
    permanent, before, current, borrowed, expected
) -> None:
    """None of another device, and none of another kind."""
    found = LinkAddresses(permanent, before, current, borrowed=borrowed)
    if expected is not None:
        assert choose_mac_address(found, "eth0") == expected
    else:
        with pytest.raises(Absent, match="no Ethernet address of its own: 'eth0'"):
            choose_mac_address(found, "eth0")


@pytest.mark.parametrize("printed", ["not set", NO_MAC, INFINIBAND])
def test_a_recorded_device_without_permanent_address_has_its_current_one(printed) -> None:
    assert host(UNSET | {PERMANENT: f"Permanent address: {printed}\n"}).mac_address("eth0") == CURRENT


# The three forms are those of ethtool 6.1 (`not set`) and of older versions (zeros).


@pytest.mark.parametrize(
    "shown_by",
    [{"sys/class/net/bond0/bonding/slaves": "eth1 eth0\n"}, {"sys/class/net/eth0/master": "-> ../bond0"}],
)
def test_a_recorded_member_of_a_bond_does_not_have_the_address_of_the_bond(shown_by) -> None:
    with pytest.raises(Absent, match="no Ethernet address of its own"):
        host(UNSET | shown_by).mac_address("eth0")


@pytest.mark.parametrize(
    ("text", "name"),
    [("gpu-1\n", "gpu-1"), ("gpu-1.example.com", "gpu-1.example.com"), ("(none)\n", ""), ("\n", "")],
)
def test_the_host_name_of_a_recording(text, name) -> None:
    kernel = host({"proc/sys/kernel/hostname": text, PERMANENT: f"Permanent address: {OWN}"})
    assert read_netdev_identity(kernel, "eth0") == {f"{OWN} {name}": 1}
    if name:
        assert kernel.hostname() == name
    else:
        with pytest.raises(Absent, match="the host has no name"):
            kernel.hostname()


def test_what_is_not_recorded_is_absent() -> None:
    kernel = host({"sys/class/net/eth0/address": f"{CURRENT}\n"})
    with pytest.raises(Absent, match=r"no ethtool/eth0\.permaddr in this recording"):
        kernel.mac_address("eth0")
    with pytest.raises(Absent):
        kernel.hostname()


def test_the_name_of_this_host_is_text_whatever_its_bytes(monkeypatch) -> None:
    assert LiveKernel().hostname() == os.uname().nodename
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename=os.fsdecode(b"gpu\xff")))
    assert LiveKernel().hostname() == r"gpu\xff"


def series(found: dict[str, str]) -> list[str]:
    return [name for name in found if name.startswith("roce_netdev_info{")]


async def shown(kernel: RecordedKernel) -> dict[str, str]:
    return samples(await exposition(kernel))


@pytest.mark.parametrize("hostname", ["gpu-1", "", 'a "quoted" one', "two\nlines", "Rechner-ä"])
async def test_any_host_name_is_one_label(hostname) -> None:
    files = {PERMANENT: f"Permanent address: {OWN}\n", "proc/sys/kernel/hostname": f"{hostname}\n"}
    found = await shown(host(LINK | files))
    escaped = hostname.replace('"', r"\"").replace("\n", r"\n")
    label = f',hostname="{escaped}"' if hostname else ""
    assert series(found) == [f'roce_netdev_info{{device="mlx5_0",port="1",netdev="eth0",mac="{OWN}"{label}}}']
    assert not [name for name in found if "unmapped" in name and found[name] != "0"]


@pytest.mark.parametrize(
    ("fault", "state"),
    [
        (Absent(errno.ENODEV, "of another namespace"), (None, None)),
        (OSError(errno.EPERM, os.strerror(errno.EPERM)), ("0", "1")),
    ],
)
async def test_an_address_that_is_absent_or_refused_costs_its_series_alone(fault, state) -> None:
    kernel = host(BUSY)
    Faults(kernel, mac_address=fault)
    found = await shown(kernel)
    assert series(found) == []
    source = '{source="mac_address",device="mlx5_0",netdev="eth0"}'
    names = ("source_up", "read_errors_total")
    assert tuple(found.get(f"roce_exporter_{name}{source}") for name in names) == state
    assert [name for name in found if "mlx5_0" in name and "exporter" not in name]


async def test_it_is_read_between_scrapes_and_a_change_is_a_new_series() -> None:
    """Only the first scrape of a device waits for it; a read that hangs later delays none and costs no other source."""
    clock, kernel, gate = Clock(), host(BUSY), Gate()
    faults = Faults(kernel, mac_address=OWN)
    exporter = Exporter(Collector(kernel, Settings(refresh=60.0), clock))

    async def scrape() -> str:
        (found,) = series(samples(exporter.render(await exporter.observe(), Format.TEXT)))
        return found.partition('mac="')[2].partition('"')[0]

    assert {await scrape() for _ in range(5)} == {OWN}
    assert faults.calls.count(("mac_address", "eth0")) == 1
    faults["mac_address"] = lambda _: gate() or CURRENT
    clock.now += 61.0
    await scrape()
    await gate.entered()
    assert await scrape() == OWN, "the read hangs, and the scrape does not"
    gate.release()
    await until(lambda: not exporter._collector._in_flight)
    assert await scrape() == CURRENT


def test_simulated_hosts_differ_by_their_seed() -> None:
    """The scheme of `simulation.still`, so that a simulated switch can list them as its neighbours."""
    kernel = simulate("quiet", clock=lambda: 0.0, vendors=["mlx5-lag", "bnxt"], seed=300)
    assert (kernel.hostname(), simulate("quiet", clock=lambda: 0.0).hostname()) == ("gpu-300", "gpu-001")
    addresses = ["02:00:01:2c:00:00", "02:00:01:2c:00:01", "02:00:01:2c:00:02"]
    assert [kernel.mac_address(f"eth{number}") for number in range(3)] == addresses
    for netdev in ("bond0", "eth9"):
        with pytest.raises(Absent):
            kernel.mac_address(netdev)


def test_no_other_raw_name_is_taken_for_an_address() -> None:
    row = INDEX.claimed("", MAC_ADDRESS, f"{OWN} gpu-1")
    assert row is not None
    assert row.name == "roce_netdev_info"
    for name in ("rx discards", f"{OWN}", f"{OWN[:-1]} gpu-1", f"{OWN}:00 gpu-1"):
        assert INDEX.claimed("", MAC_ADDRESS, name) is None


def test_what_a_live_host_is_read_with_loads_no_pyroute2(tmp_path) -> None:
    """It costs 11 MB and a tenth of a second, which a host without virtual functions does not need; see `kernel.rtnetlink`."""
    (tmp_path / "class/net/eth0").mkdir(parents=True)
    (tmp_path / "class/net/eth0/address").write_text(f"{OWN}\n")
    code = """
import sys
import roce_exporter.cli.entry, roce_exporter.cli.serve
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.simulated.kernel import simulate
from roce_exporter.host.sources.netdev import read_netdev_identity
print(read_netdev_identity(simulate("quiet", clock=lambda: 0.0), "eth0"))
other, live = LiveKernel(sys.argv[1]), LiveKernel()
for read, name in (
    (other.mac_address, "eth0"),
    (live.mac_address, "lo"),
    (live.virtual_functions, "lo"),
    (live.devlink_reporters, "pci/none"),
    (live.devlink_versions, "pci/none"),
):
    try:
        print(read(name))
    except OSError as error:
        print(type(error).__name__)
print(bool(live.ip_facts("lo")), len(live.ip_paths([("127.0.0.1", "127.0.0.1")])), "pyroute2" in sys.modules)
"""
    told = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert told.stdout.splitlines() == ["{'02:00:00:01:00:00 gpu-001': 1}", *["Absent"] * 5, "True 1 False"]
