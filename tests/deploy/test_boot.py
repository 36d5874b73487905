"""The Debian package on a machine that really boots: systemd as PID 1, in a container of systemd-nspawn.

Not tested: the limits on memory and CPU, and RDMA hardware, which a container's own /sys does not have.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from deploy_image import machine_tar
from deploy_tools import need_root, ran
from tools import lacking, need

pytestmark = pytest.mark.nightly

HERE = Path(__file__).parent
NO_CAPABILITY = f"{0:016x}"
NET_ADMIN = 1 << 12
DAC_READ_SEARCH = 1 << 2
SYSLOG = 1 << 34
OWN_PROCESSES = 2
"""The exporter and the command that lists the processes."""


def booted(root: Path, script: str, *commands: tuple[str, ...]) -> dict[str, str]:
    """The report of a script that runs when the machine is up; the commands run before, in its root."""
    need_root()
    nspawn = need("systemd-nspawn")
    subprocess.run(["tar", "--extract", "-f", machine_tar(), "-C", root], check=True)
    (root / "booted.sh").write_text(script)
    shutil.copy(HERE / "booted.service", root / "etc/systemd/system")
    for command in (*commands, ("systemctl", "enable", "booted.service")):
        subprocess.run(["chroot", root, *command], check=True, capture_output=True)
    flags = ("--quiet", "--register=no", "--keep-unit", "--private-network", "--capability=CAP_SYSLOG")
    boot = ran(nspawn, *flags, "-D", root, "--boot", timeout=800)
    if not (root / "report").exists():
        lacking(f"systemd-nspawn cannot boot here: {(boot.stdout + boot.stderr)[-500:]}")
    return dict(line.partition(" ")[::2] for line in (root / "report").read_text().splitlines())


@pytest.fixture(scope="module")
def report(package, tmp_path_factory) -> Iterator[dict[str, str]]:
    """The output of booted.sh."""
    root = tmp_path_factory.mktemp("machine")
    shutil.copy(package, root / "package.deb")
    yield booted(root, (HERE / "booted.sh").read_text(), ("dpkg", "--install", "/package.deb"))
    shutil.rmtree(root)


ELSEWHERE = re.compile(r"apt-get update|deploy/(deb|rpm)/build.sh|^dnf ")
"""Lines of docs/bare-metal.md that need a network, a clone or RHEL."""
JUDGES = re.compile(r"roce-exporter check|grep roce_port_health")
"""Lines whose exit code says what this machine, without RDMA and Prometheus, has."""


def test_the_page_for_bare_metal_works_line_by_line(package, tmp_path) -> None:
    blocks = re.findall(
        r"```shell\n(.*?)```", (HERE.parents[1] / "docs/bare-metal.md").read_text(), re.DOTALL
    )
    lines = [line for line in "".join(blocks).splitlines() if not ELSEWHERE.search(line)]
    assert len(lines) > 12
    shutil.copy(package, tmp_path / "package.deb")
    (tmp_path / "lines").write_text("\n".join(lines) + "\n")
    script = """
        exec >/report 2>/report.errors
        export DEBIAN_FRONTEND=noninteractive
        echo 'APT::Get::Assume-Yes "true";' >/etc/apt/apt.conf.d/yes
        mkdir -p /tmp/packages
        cp /package.deb /tmp/packages/
        number=0
        while read -r line; do
          bash -c "$line" </dev/null >&2
          echo "line.$number $?"
          number=$((number + 1))
          while [ "$(systemctl is-active roce-exporter)" = activating ]; do sleep 0.1; done
          # what the page has the reader change
          file=/etc/roce-exporter-switches/switches.yml
          [ ! -e $file ] || echo 'targets: {leaf1: {module: sonic, address: "redis://192.0.2.1"}}' >$file
          [ "$line" != "${line#apt-get install}" ] && echo "installed $(systemctl is-active roce-exporter)"
          [ "$line" != "${line%roce-exporter-switches}" ] && echo "switches $(systemctl is-active roce-exporter-switches)"
        done </lines
        echo "removed $(systemctl is-active roce-exporter)"
    """
    found = booted(tmp_path, script)
    codes = {line: found[f"line.{number}"] for number, line in enumerate(lines)}
    assert {line: code for line, code in codes.items() if code != "0" and not JUDGES.search(line)} == {}
    assert {code for line, code in codes.items() if JUDGES.search(line)} <= {"0", "1", "2", "3"}
    assert (found["installed"], found["switches"], found["removed"]) == ("active", "active", "inactive")


def test_it_runs_under_its_own_user_without_privileges(report) -> None:
    told = {key.removeprefix("core."): value for key, value in report.items() if key.startswith("core.")}
    assert int(told.pop("etc")) > 10
    assert 1 <= int(told.pop("processes")) <= OWN_PROCESSES
    assert told == {
        "active": "active",
        "ready": "roce_exporter is ready.",
        "CapEff": NO_CAPABILITY,
        "CapBnd": NO_CAPABILITY,
        "CapAmb": NO_CAPABILITY,
        "NoNewPrivs": "1",
        "Seccomp": "2",
        "user": "roce-exporter",
        "kmsg": "0",
        "home": "0",
        "written": "0",
    }


@pytest.mark.parametrize(
    ("name", "capabilities"),
    [
        ("optics", NET_ADMIN),
        ("debugfs", NET_ADMIN | DAC_READ_SEARCH),
        ("loopback", NET_ADMIN | DAC_READ_SEARCH),
        ("owners", NET_ADMIN | DAC_READ_SEARCH),
        ("kernel-log", NET_ADMIN | DAC_READ_SEARCH | SYSLOG),
    ],
)
def test_drop_ins_combine_and_each_adds_what_it_documents(report, name, capabilities) -> None:
    assert report[f"{name}.ready"] == "roce_exporter is ready."
    for kind in ("CapEff", "CapBnd", "CapAmb"):
        assert int(report[f"{name}.{kind}"], 16) == capabilities
    assert (report[f"{name}.user"], report[f"{name}.home"]) == ("roce-exporter", "0")


def test_only_with_the_drop_in_for_owners_processes_of_others_are_visible(report) -> None:
    """At least init, the journal and the bus of the machine."""
    assert int(report["loopback.processes"]) <= OWN_PROCESSES < int(report["owners.processes"])


def test_only_with_the_drop_in_for_the_kernel_log_its_node_is_visible(report) -> None:
    assert (report["owners.kmsg"], report["kernel-log.kmsg"]) == ("0", "1")


def test_with_the_read_capability_few_files_are_reachable(report) -> None:
    assert int(report["debugfs.etc"]) <= 4 < int(report["optics.etc"])


def test_a_hung_exporter_is_restarted_and_a_healthy_one_is_not(report) -> None:
    assert report["alive.restarts"] == "0"
    assert (report["hung.restarts"], report["hung.active"]) == ("1", "active")


def test_an_exporter_that_cannot_go_on_ends_and_is_restarted(report) -> None:
    """Without a thread for the fast loop it must not serve as if it polled."""
    assert (report["starved.restarted"], report["starved.said"]) == ("yes", "yes")
    assert report["starved.status"] in ("1", "0"), "the pid is 0 while the next process starts"
    assert (report["fed.active"], report["fed.ready"]) == ("active", "roce_exporter is ready.")


def test_an_invalid_flag_is_reported_once(report) -> None:
    """And not every five seconds."""
    told = {key: report[f"unusable.{key}"] for key in ("active", "status", "restarts", "said")}
    assert told == {"active": "failed", "status": "2", "restarts": "0", "said": "1"}
    assert report["end"] == "reached"
