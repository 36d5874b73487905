"""What runbooks, causes and fixes say of `rdma` and `devlink`: these tools parse it, which need a kernel with RDMA."""

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[2] / "alerts")]
import test_runbook_commands as commands  # noqa: E402 - the folder is on the path from here on

TOOLS = frozenset({"rdma", "devlink"})


@pytest.fixture(autouse=True)
def _a_device_that_exists(cards, monkeypatch) -> None:
    """`rdma` reads the rest of a command only if it knows the device."""
    for place in ("DEVICE", "{device}"):
        monkeypatch.setitem(commands.PLACES, place, next(iter(cards)))


def test_every_command_is_one_that_its_tool_accepts() -> None:
    said = {
        (name, command): commands.refusal(command, TOOLS)
        for name, command in commands.told()
        if commands.words_of(command)[:1] in ([tool] for tool in TOOLS)
    }
    assert len(said) > 20
    assert {one: text for one, text in said.items() if text} == {}


@pytest.mark.parametrize(
    "command",
    [
        "rdma resource show qp dev DEVICE",
        "rdma link shaw DEVICE/PORT",
        "devlink dev reload",
        "devlink health shaw",
        "devlink health dump show pci/0000:BB:DD.F NAME",
    ],
)
def test_a_command_that_its_tool_refuses_is_found(command) -> None:
    assert commands.refusal(command, TOOLS)
