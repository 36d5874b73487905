"""The daemon observes only: the one module that changes a setting of the host is out of its reach."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict

import pytest
from package_modules import MODULES, PACKAGE, imports, nodes

SWITCH = "roce_exporter.host.kernel.counter_switch"
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


def test_only_the_command_that_is_for_it_imports_what_changes_a_setting() -> None:
    importers = {
        name: {module for module in MODULES if name in imports(module)}
        for name in (SWITCH, "roce_exporter.cli.counters")
    }
    assert list(importers.values()) == [{PACKAGE / "cli/counters.py"}, {PACKAGE / "cli/entry.py"}]


def test_only_one_module_has_requests_that_change_something() -> None:
    """Every `NLDEV | NUMBER` is a request."""
    sent: dict[str, set[int]] = defaultdict(set)
    for module in MODULES:
        for node in nodes(module):
            match node:
                case ast.BinOp(left=ast.Name(id="NLDEV"), right=ast.Constant(value=number)):
                    sent[module.stem].add(number)
    changing = {name: found for name in sent if (found := sent[name] & set(CHANGING.values()))}
    assert changing == {"counter_switch": {16}}
    assert {1, 5, 9, 17, 24} <= sent["rdma_netlink"], "requests that read are found"
    assert {10, 11, 12, 13, 22} <= sent["object_netlink"]


STOPPED = """
import os, signal, sys
from roce_exporter.cli import main, serve
def stop(state):
    if state == serve.READY:
        print(state)
        os.kill(os.getpid(), signal.SIGTERM)
serve.notify = stop
main(sys.argv[1:])
"""
SERVE = ("serve", "--web.listen-address=127.0.0.1:0", "--log.level=error")
RUN = "import sys; from roce_exporter.cli import main; main(sys.argv[1:])"


@pytest.mark.parametrize(
    ("code", "arguments", "is_loaded"),
    [
        pytest.param(STOPPED, SERVE, False, id="serve, up to its first complete collection"),
        pytest.param(RUN, ("once", "--host.simulate=quiet"), False, id="once"),
        pytest.param(RUN, ("counters", "show"), True, id="counters"),
    ],
)
def test_only_one_command_loads_it(code: str, arguments: tuple[str, ...], is_loaded: bool) -> None:
    ends = f"{code}\nsys.stderr.write('loaded' if {SWITCH!r} in sys.modules else 'not loaded')"
    command = [sys.executable, "-c", ends, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout or is_loaded, "the command has run"
    assert result.stderr.endswith("not loaded") is not is_loaded
