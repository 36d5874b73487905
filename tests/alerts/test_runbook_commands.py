"""Commands for people: the real tools parse those of the runbooks, of the texts of alerts, and of the causes and fixes of the checks.

`FILES=zipapp QUICK=tests/alerts/test_runbook_commands.py tests/clean_roots.sh trixie` has them parsed by the tools of Debian 13, and
tests/lab/guest/test_commands.py those of `rdma` and `devlink`, which need a kernel with RDMA.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from alert_promtool import ALERTS
from tools import found as installed
from tools import need

import roce_exporter.checks
from roce_exporter.checks.health.causes import CAUSES
from roce_exporter.checks.settings import ALL_CHECKS, Profile
from roce_exporter.checks.settings.auditor import fill
from roce_exporter.checks.settings.port_settings import PortSettings
from roce_exporter.cli.options import OptionError, parse_options

TOOLS = frozenset({"ethtool", "dcb", "ip", "lspci"})
REFUSED = re.compile(
    r"bad command line|is unknown|unknown parameter|usage:|unrecognized option|invalid option|Unsupported filter|garbage|is wrong:|is expected rather than|unknown option|unknown [a-z]+ command|command \".*\" not found|wrong identification",
    re.IGNORECASE,
)
IN_TEXT = r"(?:time )?(?:ethtool|dcb|ip|lspci|rdma|devlink|curl|show|roce-exporter)\b"
PLACES = {
    "{netdev}": "lo", "{device}": "rxe0", "NETDEV": "lo", "DEV": "lo", "DEVICE": "rxe0", "PORT": "1", "LEG": "lo",
    "ADDRESS": "127.0.0.1", "PEER": "127.0.0.1", "LENGTH": "8", "SUBNET": "127.0.0.0/8", "GATEWAY": "127.0.0.1", "MTU": "4200", "PCI": "0000:01:00.0", "0000:BB:DD.F": "0000:01:00.0", "NAME": "fw",
}  # fmt: skip
"""What stands for the placeholders; `lo` refuses every change."""
BY_PATTERN = {
    r"rdma (resource|res) show qp dev\b": "queue pairs are selected by `link DEVICE`",
    r"devlink dev reload$": "needs the device: devlink dev reload pci/0000:BB:DD.F",
    r"curl .*//(?!localhost|127\.)[^/]*/debug/": "/debug/ answers on loopback only",
    r"show priority-flow-control(?! (counters|status|watchdog))": "the commands of each system are in switches.md",
}
"""What cannot be run here."""


def commands(text: str) -> set[str]:
    """The commands in backticks and in strings."""
    found = [*re.finditer(rf"`({IN_TEXT} [^`]+)`", text), *re.finditer(rf'"({IN_TEXT} [^"]+)"', text)]
    found += re.finditer(rf"First command, on the host: ({IN_TEXT} [^.;\n]+)", text)
    return {" ".join(one[1].split()) for one in found}


def steps(text: str) -> Iterator[str]:
    """The commands of a line that is one, or that has some after a word with a colon or between semicolons."""
    for part in re.split(r"[;(]|(?<!\S)or:|: | && ", text):
        if re.match(rf"{IN_TEXT} ", part.strip()):
            yield re.split(r"[)]|, ", part.strip())[0]


def told() -> set[tuple[str, str]]:
    """Where a command is, and the command."""
    places = [*(ALERTS / "runbooks").glob("*.md"), *ALERTS.glob("rules/*.yml")]
    places += Path(roce_exporter.checks.__path__[0]).rglob("*.py")
    found = {(place.name, command) for place in places for command in commands(place.read_text())}
    for cause in CAUSES:
        found |= {(cause.name, one) for text in cause.next for one in steps(text)}
        found |= {(cause.name, one) for one in commands(cause.wrong_if)}
    values = fill(PortSettings("rxe0", 1, "lo", "mlx5"), Profile("test"))
    for check in ALL_CHECKS:
        found |= {(check.id, one) for text in check.fix.values() for one in steps(text.format(**values))}
    return found


@cache
def iproute2() -> tuple[int, ...]:
    """The version of `ip` and `dcb`."""
    said = subprocess.run(["ip", "-V"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, re.search(r"iproute2-(\d+)\.(\d+)", said).groups()))


def words_of(command: str) -> list[str]:
    """What a shell makes of the first program of a command; empty if no tool can parse it: a flag's name, or a placeholder that has no value."""
    first = re.split(r"[|>;&]", command)[0].strip()
    for name, value in PLACES.items():
        first = first.replace(name, value) if name[0] == "{" else re.sub(rf"\b{name}\b", value, first)
    if re.search(r"[A-Z{<…]{2,}|\{", first) or re.fullmatch(r"(?!lspci)\S+( -\S+)*", first):
        return []
    needs = re.search(r"# iproute2 (\d+)\.(\d+) or newer$", command)
    if needs and iproute2() < (int(needs[1]), int(needs[2])):
        return []
    try:
        return shlex.split(first, comments=True)
    except ValueError:  # a part of a command, because the pattern ends at a quote
        return []


@cache
def refusal(command: str, tools: frozenset[str] = TOOLS) -> str:
    """What one of these tools says if it refuses the arguments; nothing if it only cannot do what they say."""
    words = words_of(command)
    if words[:1] == ["roce-exporter"]:
        try:
            parse_options(words[1:])
        except (OptionError, SystemExit) as error:
            lacks_value = str(error).startswith("argument --") and "expected one argument" in str(error)
            return "" if lacks_value else str(error)
    if not words or words[0] not in tools or not installed(words[0]):
        return ""
    if words[0] == "ip" and {"set", "add", "del", "flush"} & {*words}:
        # changes addresses, routes and rules of a network of its own; without the right to one nothing is run
        words = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--net", *words]
    done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    # rdma and devlink end without an error after they have printed how they are used
    said = done.stderr + (done.stdout if done.returncode else "")
    return said.strip().partition("\n")[0] if REFUSED.search(said) else ""


def test_every_command_is_one_that_its_tool_accepts() -> None:
    for tool in ("ethtool", "dcb", "ip"):
        need(tool)
    found = told()
    assert len(found) > 180
    wrong = {(name, command, said) for name, command in found if (said := refusal(command))}
    wrong |= {
        (name, command, why)
        for name, command in found
        for pattern, why in BY_PATTERN.items()
        if re.search(pattern, command)
    }
    assert wrong == set()


@pytest.mark.parametrize(
    "command",
    [
        "ethtool --set-tunable NETDEV pfc-prevention-tout auto",
        "dcb pfc shaw dev NETDEV",
        "ip link shaw {netdev}",
        "roce-exporter check health --helth.limit=1",
    ],
)
def test_a_command_that_its_tool_refuses_is_found(command) -> None:
    if not command.startswith("roce-exporter"):
        need(command.split(maxsplit=1)[0])
    assert refusal(command)
