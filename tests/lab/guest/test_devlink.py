"""devlink of a real kernel: netdevsim has health reporters that fail and recover on demand; `devlink` is the oracle."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon import COMMAND, Exporter, value, wait_until
from nic import run

from roce_exporter.host.kernel import Absent
from roce_exporter.host.kernel.devlink_netlink import DevlinkNetlink
from roce_exporter.host.kernel.live import LiveKernel
from roce_exporter.host.recorded.devlink_text import HEALTH, INFO, RecordedDevlink

INSTANCE = "netdevsim/netdevsim7"

MODULES = Path(os.environ.get("ROCELAB_EXTRA", "/nowhere"))

DEBUG = Path("/sys/kernel/debug/netdevsim/netdevsim7/health")

UNPRIVILEGED = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all")


@pytest.fixture(scope="module")
def exporter() -> Iterator[Exporter]:
    """Soft-RoCE above netdevsim: the RDMA device has no function, so its network device's counts."""
    run("modprobe", "rdma_rxe")
    module = str(MODULES / "netdevsim.ko")
    for needed in filter(None, run("modinfo", "-F", "depends", module).strip().split(",")):
        run("modprobe", needed)
    run("insmod", module)
    Path("/sys/bus/netdevsim/new_device").write_text("7 1")
    # A second instance, so that a list of all would show a foreign one.
    Path("/sys/bus/netdevsim/new_device").write_text("8 1")
    (place,) = Path("/sys/bus/netdevsim/devices/netdevsim7/net").iterdir()
    run("ip", "link", "set", place.name, "up")
    run("rdma", "link", "add", "rxe_dl", "type", "rxe", "netdev", place.name)
    made = Exporter("--sampler.mode=off", "--inventory.refresh=1", "--collect.timeout=20")
    yield made
    assert made.stop() == 0
    run("rdma", "link", "del", "rxe_dl")
    for number in ("7", "8"):
        Path("/sys/bus/netdevsim/del_device").write_text(number)
    run("rmmod", "netdevsim")


def oracle() -> RecordedDevlink:
    """What the tool prints now."""
    printed = {
        HEALTH: run("env", "TZ=UTC", "devlink", "-j", "health", "show"),
        INFO: run("devlink", "-j", "dev", "info"),
        "devlink/netdevsim_netdevsim7.vnic.json": run(
            "devlink", "-j", "health", "diagnose", INSTANCE, "reporter", "dummy"
        ),
    }
    return RecordedDevlink(printed.__getitem__)


def break_health(message: str) -> None:
    """Report an error that cannot be recovered from."""
    (DEBUG / "fail_recover").write_text("Y")
    # One system call: a buffered file writes again when it is closed after an error.
    descriptor = os.open(DEBUG / "break_health", os.O_WRONLY)
    try:
        with contextlib.suppress(OSError):  # the write fails because the recovery does
            os.write(descriptor, message.encode())
    finally:
        os.close(descriptor)


def exported(exporter: Exporter) -> tuple[float | None, ...]:
    """State, errors and recoveries of the reporter `dummy` as exported without any privilege."""
    samples = exporter.scrape()
    names = ("health_state", "health_errors_total", "health_recoveries_total")
    return tuple(value(samples, f"roce_devlink_{name}", device="rxe_dl", reporter="dummy") for name in names)


def test_reporters_are_those_of_the_tool(exporter) -> None:
    """Healthy, in error, recovered: the exporter and `devlink health show` agree at every step."""
    assert exported(exporter) == (0, 0, 0)
    break_health("firmware is on fire")
    wait_until(lambda: exported(exporter) == (1, 1, 0))
    found = DevlinkNetlink().reporters(INSTANCE)
    printed = oracle().reporters(INSTANCE)
    assert [one[:4] for one in found] == [one[:4] for one in printed]
    assert {one.name: one.is_healthy for one in found} == {"empty": True, "dummy": False}
    broken = next(one for one in found if one.name == "dummy")
    expected = next(one for one in printed if one.name == "dummy")
    assert broken.dumped is not None
    assert int(broken.dumped) == expected.dumped
    (DEBUG / "fail_recover").write_text("N")
    run("devlink", "health", "recover", INSTANCE, "reporter", "dummy")
    wait_until(lambda: exported(exporter) == (0, 1, 1))
    assert [one[:4] for one in DevlinkNetlink().reporters(INSTANCE)] == [
        one[:4] for one in oracle().reporters(INSTANCE)
    ]


def test_versions_are_those_of_the_tool(exporter) -> None:
    """Netdevsim reports no version on some kernels: then both have none."""

    def versions(read: object) -> object:
        try:
            return read(INSTANCE)  # type: ignore[operator]
        except Absent:
            return ()

    assert versions(DevlinkNetlink().versions) == versions(oracle().versions)
    assert value(exporter.scrape(), "roce_exporter_source_up", device="rxe_dl", source="devlink") == 1


def test_a_diagnosis_has_the_numbers_that_the_tool_prints(exporter) -> None:
    """Netdevsim's diagnosis has numbers of each size, texts, flags, nested objects and lists."""
    assert exporter.process.poll() is None
    found = DevlinkNetlink().diagnosis(INSTANCE, "dummy")
    printed = oracle().vnic(INSTANCE)
    assert {name: found[name] for name in printed} == printed
    # The tool prints the numbers of this list without their name, so only the exporter has the last of them.
    assert found.keys() - printed.keys() <= {"in_array_nested_test_u8"}
    assert found["test_u64"] > 0


def test_a_diagnosis_without_the_privilege_is_refused_by_the_kernel(exporter) -> None:
    """The kernel refuses before it looks for the reporter, and the exporter does not call that a failure."""
    code = (
        "from roce_exporter.host.kernel.devlink_netlink import DevlinkNetlink\n"
        f"try: DevlinkNetlink().diagnosis({INSTANCE!r})\n"
        "except PermissionError as error: print('refused', error.errno)"
    )
    python = sys.executable
    assert run(*UNPRIVILEGED, python, "-c", code).strip() == "refused 1"
    samples = exporter.scrape()
    assert value(samples, "roce_exporter_source_up", device="rxe_dl", source="devlink_vnic") is None


def test_an_instance_that_does_not_exist_is_absent(exporter) -> None:
    """Also on a kernel without selectors, which replies with all instances."""
    assert exporter.process.poll() is None
    kernel = LiveKernel()
    for read in (kernel.devlink_reporters, kernel.devlink_versions, kernel.devlink_vnic):
        with pytest.raises(Absent):
            read("netdevsim/netdevsim99")


def test_the_setup_of_a_real_host(exporter) -> None:
    """Without privileges: devices, missing privileges, the clock of the virtual machine, and scrapes of the exporter."""
    exporter.scrape()
    command = [
        *UNPRIVILEGED,
        COMMAND,
        "check",
        "setup",
        "--format=json",
        f"--target=http://{exporter.address}",
    ]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    document = json.loads(found.stdout)
    assert found.returncode == {"ok": 0, "unknown": 3}.get(document["status"], 1)
    texts = {one["title"]: one["status"] for one in document["findings"]}
    assert "rxe_dl" in {one["device"] for one in document["findings"]}
    assert any("CAP_NET_ADMIN is missing" in gap["what"] for gap in document["not_checked"])
    assert [status for text, status in texts.items() if "has been scraped" in text] == ["ok"]
    assert len([one for one in document["findings"] if one["check"] == "clock"]) == 1
    as_root = subprocess.run(
        [COMMAND, "check", "setup", "--format=json"], capture_output=True, text=True, check=False
    )
    assert "CAP_NET_ADMIN: available" in as_root.stdout
