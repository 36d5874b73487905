"""`Show-RoceCounters.ps1` only reads. PowerShell is not available here: the grammar of tree-sitter parses it, nothing runs it."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from deploy_tools import tool_environment
from windows_hosts import WINDOWS, objects

pytestmark = pytest.mark.ci

SCRIPT = WINDOWS / "Show-RoceCounters.ps1"

READING = {
    "Get-Content",
    "Get-Counter",
    "Join-Path",
    "ForEach-Object",
    "Where-Object",
    "Sort-Object",
}
"""All cmdlets of the script. None of them can change a setting."""

PARSE = """
import json, sys
import tree_sitter, tree_sitter_powershell
parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))
tree = parser.parse(sys.stdin.buffer.read())
names, waiting = [], [tree.root_node]
while waiting:
    node = waiting.pop()
    waiting += node.children
    if node.type == "command_name":
        names.append(node.text.decode())
print(json.dumps({"error": tree.root_node.has_error, "commands": sorted(set(names))}))
"""


def parsed(text: str) -> tuple[bool, set[str]]:
    """Whether the text has an error, and the names of its commands."""
    python = tool_environment("powershell") / "python"
    done = subprocess.run([python, "-c", PARSE], input=text.encode(), stdout=subprocess.PIPE, check=True)
    answer = json.loads(done.stdout)
    return answer["error"], set(answer["commands"])


def test_it_is_powershell_and_runs_only_cmdlets_that_read() -> None:
    assert parsed(SCRIPT.read_text()) == (False, READING)


@pytest.mark.parametrize("line", ["Set-NetQosDcbxSetting -Willing 0", "& mlx5cmd.exe -Stat", "iex $object"])
def test_a_command_that_is_added_is_found(line: str) -> None:
    """The test above would fail for it."""
    _, commands = parsed(f"{SCRIPT.read_text()}\n{line}\n")
    assert commands != READING


def test_an_unbalanced_script_is_found() -> None:
    broken, _ = parsed(SCRIPT.read_text().replace("== found", "'", 1) + "\nif ($x) {\n")
    assert broken


def test_no_method_of_dotnet_is_called() -> None:
    """A cmdlet is not the only way to change something."""
    code = re.sub(r"<#.*?#>", "", SCRIPT.read_text(), flags=re.DOTALL)
    assert not re.search(
        r"\[[\w.]+\]::|New-Object|\.\w+\((?!.*'\))|Invoke-|Start-|>\s*\S+\.txt",
        code.replace(".ContainsKey(", ""),
    )


def test_its_expressions_find_every_counter_of_the_configuration() -> None:
    """The expressions are taken from the script: they read the configuration line by line."""
    of_object, of_counter = re.findall(r"\$line -match '(.+?)'\)", SCRIPT.read_text())
    found, current = [], ""
    for line in (WINDOWS / "windows_exporter.yml").read_text().splitlines():
        if match := re.match(of_object, line):
            current = match[1]
        elif match := re.match(of_counter, line):
            found.append((current, match[1]))
    assert found == [(one["object"], counter["name"]) for one in objects() for counter in one["counters"]]
