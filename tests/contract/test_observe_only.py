"""The daemon observes only: the one module that changes a setting of the host is out of its reach."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "roce_exporter"

SWITCH = "roce_exporter.kernel.counter_switch"

COMMAND = PACKAGE / "cli/counters.py"

CHANGING = {
    "RDMA_NLDEV_CMD_SET": 2,
    "RDMA_NLDEV_CMD_NEWLINK": 3,
    "RDMA_NLDEV_CMD_DELLINK": 4,
    "RDMA_NLDEV_CMD_SYS_SET": 7,
    "RDMA_NLDEV_CMD_STAT_SET": 16,
    "RDMA_NLDEV_CMD_STAT_DEL": 18,
    "RDMA_NLDEV_CMD_NEWDEV": 27,
    "RDMA_NLDEV_CMD_DELDEV": 28,
}
"""Requests of RDMA netlink that change something (include/uapi/rdma/rdma_netlink.h)."""


def importers(module: str) -> set[Path]:
    """The files of the package that import a module, at their top or in a function."""
    parent, _, name = module.rpartition(".")
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = (
                {alias.name for alias in node.names}
                if isinstance(node, ast.Import | ast.ImportFrom)
                else set()
            )
            source = node.module if isinstance(node, ast.ImportFrom) else None
            if module in names or source == module or (source == parent and name in names):
                found.add(path)
    return found


def commands() -> dict[str, set[int]]:
    """Per module, the commands of RDMA netlink that it can send: every `NLDEV | NUMBER`."""
    found: dict[str, set[int]] = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.BinOp)
                and isinstance(node.left, ast.Name)
                and node.left.id == "NLDEV"
                and isinstance(node.right, ast.Constant)
            ):
                found.setdefault(path.stem, set()).add(node.right.value)
    return found


def test_only_the_command_that_is_for_it_imports_what_changes_a_setting() -> None:
    assert importers(SWITCH) == {COMMAND}
    assert importers("roce_exporter.cli.counters") == {PACKAGE / "cli/entry.py"}


def test_only_one_module_has_requests_that_change_something() -> None:
    changing = {
        name: numbers & set(CHANGING.values())
        for name, numbers in commands().items()
        if numbers & set(CHANGING.values())
    }
    assert changing == {"counter_switch": {16}}


def test_the_requests_that_read_are_found() -> None:
    """Otherwise the test before would pass whatever the modules contain."""
    assert {1, 5, 9, 17, 24} <= commands()["rdma_netlink"]
    assert {10, 11, 12, 13, 22} <= commands()["object_netlink"]


@pytest.mark.parametrize(
    ("arguments", "is_loaded"),
    [
        (["once", "--host.simulate=quiet"], False),
        (["counters", "show"], True),
    ],
)
def test_other_commands_do_not_load_it(arguments: list[str], is_loaded: bool) -> None:
    code = (
        "import sys; from roce_exporter.cli import main; main(sys.argv[1:]); "
        f"sys.stderr.write('loaded' if {SWITCH!r} in sys.modules else 'not loaded')"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert result.stderr.endswith("not loaded") is not is_loaded


def test_a_running_daemon_has_not_loaded_it() -> None:
    """`serve` on this host, up to its first complete collection."""
    code = (
        "import os, signal, sys\n"
        "from roce_exporter.cli import main, serve\n"
        "ready = []\n"
        "def stop(state):\n"
        "    if state == serve.READY:\n"
        "        ready.append(state)\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "serve.notify = stop\n"
        "main(['serve', '--web.listen-address=127.0.0.1:0', '--log.level=error'])\n"
        f"print(len(ready), {SWITCH!r} in sys.modules)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("1 False\n", "")
