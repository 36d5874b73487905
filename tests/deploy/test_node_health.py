"""Node Problem Detector's plugin and the examples that taint or drain a node: real scripts, a real exporter, fake kubectl and scontrol."""

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from deploy_image import root_tar
from deploy_servers import running
from deploy_tools import DEPLOY, fetch_json, need_root, printed, ran
from http_answers import answering
from tools import lacking
from waiting import wait_until

from roce_exporter.checks.finding import NotChecked, Report, Status
from roce_exporter.checks.health.causes import NAMED, Cause
from roce_exporter.checks.health.port_health import Condition, PortConditions, health_document
from roce_exporter.model.owner import ProcessFacts
from roce_exporter.owners.identify import owner_of

PLUGIN = DEPLOY / "node-problem-detector/check-roce-health.sh"
MONITOR = DEPLOY / "node-problem-detector/roce-port-monitor.json"
TAINT = DEPLOY / "examples/taint-node.sh"
DRAIN = DEPLOY / "examples/drain-slurm-node.sh"


def document(*causes: Cause, age: float = 0.0, judged: bool = True) -> bytes:
    """The document of a host with two ports, of which the second has these causes."""
    now = time.time() - age
    reasons = tuple(Condition(cause.finding("mlx5_1", "1", ("a",), harm=1.0), now, now) for cause in causes)
    worst = max((cause.health for cause in causes), default=Status.OK)
    ports = {
        ("mlx5_0", "1"): PortConditions((), Status.OK, now, ()),
        ("mlx5_1", "1"): PortConditions(reasons, worst, now, ()),
    }
    found = health_document(
        ports if judged else {}, Report((), (NotChecked("optics"),)), now, now if judged else None, 15.0
    )
    return json.dumps(found, indent=1).encode() + b"\n"


Body = bytes | Callable[[], bytes]
"""A document, or what makes it when it is served, so that it is new however long the tests before took."""

FAILED, DEGRADED, FIT = (
    partial(document, NAMED["link_down"], NAMED["incast"]),
    partial(document, NAMED["link_flapping"]),
    partial(document, NAMED["incast"]),
)


@contextmanager
def serving(body: Body, status: int = 200) -> Iterator[str]:
    """The URL of a server whose reply is this body."""
    with answering(lambda _: (status, body if isinstance(body, bytes) else body())) as server:
        yield f"{server.url}/health.json"


def check(level: str, url: str, path: str | None = None) -> tuple[int, str]:
    """Exit status and output of the plugin."""
    environment = {**os.environ, **({"PATH": path} if path else {})}
    done = ran("/bin/bash", PLUGIN, level, url, env=environment)
    assert done.stderr == ""
    return done.returncode, done.stdout.rstrip("\n")


@pytest.fixture
def without_curl(tmp_path) -> str:
    """A PATH with sed and cat alone, as in a small image."""
    for tool in ("sed", "cat"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or tool)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("body", "failed", "degraded"),
    [
        (FIT, 0, 0),
        (DEGRADED, 0, 1),
        (FAILED, 1, 1),
        (document(judged=False), 2, 2),
        (document(NAMED["link_down"], age=600), 2, 2),  # an exporter that is stuck
        (document(NAMED["link_down"]).replace(b'"version": 1', b'"version": 2'), 2, 2),
        (b"", 2, 2),
        (b"<html>", 2, 2),
    ],
    ids=["fit", "degraded", "failed", "not judged", "old", "another version", "empty", "another server"],
)
def test_the_exit_status_is_that_of_the_document(body, failed, degraded, without_curl) -> None:
    with serving(body) as url:
        for path in (None, without_curl):
            assert check("failed", url, path)[0] == failed
            assert check("degraded", url, path)[0] == degraded


def test_the_message_names_the_port_and_its_worst_reason() -> None:
    with serving(FAILED) as url:
        assert check("failed", url) == (1, "mlx5_1/1 failed: link_down (link)")
    with serving(FIT) as url:
        assert check("failed", url) == (0, "2 of 2 ports healthy")


@pytest.mark.parametrize("status", [404, 500])
def test_an_error_of_the_server_is_unknown(status, without_curl) -> None:
    with serving(FAILED, status) as url:
        for path in (None, without_curl):
            code, said = check("failed", url, path)
            assert (code, "is roce_exporter running?" in said) == (2, True)


def test_a_wrong_argument_and_a_host_that_does_not_answer_are_unknown(without_curl) -> None:
    wrong = "the first argument must be failed or degraded, not broken"
    assert check("broken", "http://127.0.0.1:1/") == (2, wrong)
    for path in (None, without_curl):
        assert check("failed", "http://127.0.0.1:1/health.json", path)[0] == 2


@pytest.mark.ci
def test_the_plugin_reads_a_real_exporter() -> None:
    """A simulated cable that damages packets: the second round of the verdict knows it."""
    with running([sys.executable, "-m", "roce_exporter"], flags=["--host.simulate=lossy"]) as daemon:
        url = f"{daemon.url}/health.json"
        wait_until(lambda: fetch_json(url)["health"] == "degraded")
        assert check("failed", url)[0] == 0
        code, said = check("degraded", url)
        assert code == 1
        assert said.startswith("mlx5_0/1 degraded: ")
        assert daemon.stop() == 0
    assert check("failed", url)[0] == 2


def test_the_monitor_calls_the_plugin_for_both_conditions() -> None:
    """Keys as in docs/custom_plugin_monitor.md of node-problem-detector."""
    monitor = json.loads(MONITOR.read_text())
    assert monitor["plugin"] == "custom"
    assert set(monitor) == {"plugin", "pluginConfig", "source", "metricsReporting", "conditions", "rules"}
    types = [condition["type"] for condition in monitor["conditions"]]
    assert [rule["condition"] for rule in monitor["rules"]] == types
    for rule in monitor["rules"]:
        assert rule["type"] == "permanent"
        assert Path(rule["path"]).name == PLUGIN.name
        assert os.access(PLUGIN, os.X_OK)
        with serving(FAILED) as url:
            assert check(*rule["args"], url)[0] == 1


class Cluster:
    """Fake kubectl or scontrol in a folder of its own: they log what they are called with, and show one node."""

    def __init__(self, folder: Path, tool: str, shown: str) -> None:
        self.folder = folder
        self.log = folder / "log"
        (folder / "shown").write_text(shown)
        fake = folder / tool
        fake.write_text(
            '#!/bin/bash\ncase "$*" in *get* | *show*) cat "${0%/*}/shown" ;; *) printf "%s\\n" "$*" >>"${0%/*}/log" ;; esac\n'
        )
        fake.chmod(0o755)

    def run(self, script: Path, body: Body) -> list[str]:
        """What the script changed."""
        with serving(body) as url:
            environment = {
                **os.environ,
                "PATH": f"{self.folder}:{os.environ['PATH']}",
                "ROCE_HEALTH_URL": url,
                "NODE_NAME": "gpu-1",
                "SLURMD_NODENAME": "gpu-1",
            }
            printed(script, env=environment)
        return self.log.read_text().splitlines() if self.log.exists() else []


KEY = "roce.example.com/port-failed"


@pytest.mark.parametrize(
    ("body", "taints", "changes"),
    [
        (
            FAILED,
            "other\n",
            [f"taint node gpu-1 {KEY}=:NoSchedule", f"annotate node gpu-1 --overwrite {KEY}="],
        ),
        (FAILED, f"{KEY}\n", []),
        (DEGRADED, "", []),
        (FIT, "", []),
        (FIT, f"other\n{KEY}\n", [f"taint node gpu-1 {KEY}-", f"annotate node gpu-1 {KEY}-"]),
        (b"", f"{KEY}\n", []),
        (b"", "", []),
    ],
)
def test_a_node_is_tainted_while_a_port_has_failed(body, taints, changes, tmp_path) -> None:
    found = Cluster(tmp_path, "kubectl", taints).run(TAINT, body)
    assert len(found) == len(changes)
    assert all(line.startswith(change) for line, change in zip(found, changes, strict=True))


IDLE = "NodeName=gpu-1 Arch=x86_64 State=IDLE Partitions=gpu"
OURS = "NodeName=gpu-1 State=IDLE+DRAIN Partitions=gpu Reason=RoCE: mlx5_1/1 failed: link_down (link) [root@2026-01-01]"
OTHERS = "NodeName=gpu-1 State=MIXED+DRAIN Partitions=gpu Reason=disk [root@2026-01-01]"


@pytest.mark.parametrize(
    ("body", "shown", "changes"),
    [
        (FAILED, IDLE, ["update NodeName=gpu-1 State=DRAIN Reason=RoCE: mlx5_1/1 failed: link_down (link)"]),
        (FAILED, OURS, []),
        (FAILED, OTHERS, []),
        (DEGRADED, IDLE, []),
        (FIT, OURS, ["update NodeName=gpu-1 State=RESUME"]),
        (FIT, OTHERS, []),
        (b"", OURS, []),
        (b"", IDLE, []),
    ],
)
def test_a_slurm_node_is_drained_while_a_port_has_failed(body, shown, changes, tmp_path) -> None:
    """Both scripts installed as docs/slurm.md does."""
    for script in (DRAIN, PLUGIN):
        shutil.copy(script, tmp_path)
    assert Cluster(tmp_path, "scontrol", shown + "\n").run(tmp_path / DRAIN.name, body) == changes


SLURM_PAGE = (DEPLOY.parent / "docs/slurm.md").read_text()
SLURM = "slurmctld,slurmd,slurm-client,munge,python3-minimal,iproute2,curl"
CONF = """
ClusterName=lab
SlurmctldHost=node1
SlurmUser=root
AuthType=auth/munge
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
NodeName=node1 CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES
"""
ON_THE_NODE = """
set -eu
export LC_ALL=C.UTF-8
hostname node1
ip link set lo up
ip address add 192.0.2.1/32 dev lo  # Slurm wants an address that is none of loopback
printf '127.0.0.1 localhost\\n192.0.2.1 node1\\n' >/etc/hosts
install -d -o munge /run/munge /var/lib/munge
head -c 1024 /dev/zero >/etc/munge/munge.key
chown munge /etc/munge/munge.key
chmod 400 /etc/munge/munge.key
setpriv --reuid=munge --regid=munge --clear-groups munged
mkdir -p /var/spool/slurmctld /var/spool/slurmd /www
(cd /www && exec python3 -m http.server 10123 >/dev/null 2>&1) &
shows() {  # NAME: this document, as new as one of an exporter
  sed "s/\\"time\\": [0-9.]*/\\"time\\": $(date +%s)/" "/$1.json" >/www/new
  mv /www/new /www/health.json
}
until_state() {  # STATE DOCUMENT: prints the state and the reason of the node when it has this state
  until sinfo --noheader --format=%T | grep -q "$1"; do shows "$2"; sleep 1; done
  sinfo --noheader --format='%T %E'
}
slurmctld
slurmd
until_state idle fit >/dev/null
cd /clone
. /page.sh >/page.out
cat /page.out >&2
srun cat /proc/self/cgroup
echo --
sbatch --wait --output=/batch.out --wrap='cat /proc/self/cgroup' >&2
cat /batch.out
echo --
until_state drained failed
until_state idle fit
"""


@pytest.mark.nightly
def test_a_real_slurm_node_does_what_the_page_says(tmp_path) -> None:
    """Debian's slurmctld and slurmd: the owner of a job and of its batch step, and a node that is drained and resumed, with the lines of docs/slurm.md."""
    need_root()
    if not Path("/sys/fs/cgroup/freezer").exists():
        lacking("cgroups of version 1, which Slurm uses here without systemd, are not mounted")
    root = tmp_path / "root"
    root.mkdir()
    ran("tar", "--extract", "-f", root_tar("slurm-bookworm", "minbase", SLURM), "-C", root)
    (root / "clone").mkdir()
    blocks = re.findall(r"```(\w+)\n(.*?)```", SLURM_PAGE, re.DOTALL)
    lines = "".join(text for language, text in blocks if language == "ini")
    assert {"ProctrackType", "HealthCheckProgram"} <= set(re.findall(r"^\w+", lines, re.MULTILINE))
    (root / "etc/slurm/slurm.conf").write_text(CONF + lines)
    (root / "etc/slurm/cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    (by_hand,) = (text for language, text in blocks if language == "shell" and "drain-slurm-node" in text)
    (root / "page.sh").write_text(by_hand)
    (root / "node.sh").write_text(ON_THE_NODE)
    (root / "fit.json").write_bytes(FIT())
    (root / "failed.json").write_bytes(FAILED())
    mounts = f"mount -t proc proc {root}/proc && mount --rbind /sys {root}/sys && mount --rbind /dev {root}/dev && mount --bind {DEPLOY.parent} {root}/clone"
    own = ("unshare", "--mount", "--pid", "--uts", "--net", "--fork", "--kill-child", "sh", "-c")
    done = ran(*own, f"{mounts} && exec chroot {root} bash /node.sh", timeout=800)
    assert done.returncode == 0, done.stderr[-2000:]
    job, batch, states = done.stdout.split("--\n")
    owners = [owner_of(ProcessFacts(7, 1.0, "cat", "ada", text)) for text in (job, batch)]
    assert [one[0] for one in owners] == ["slurm/1.0", "slurm/2.batch"]
    drained, resumed = states.splitlines()
    assert drained.startswith("drained RoCE: mlx5_1/1 failed: link_down")
    assert resumed.startswith("idle")
