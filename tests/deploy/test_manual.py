"""Manual pages and completion: made from the parser, free of warnings, and used by real shells."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from deploy_tools import DEPLOY, lacking, need, tool_environment

from roce_exporter.cli.options import COMMANDS, make_parser
from roce_exporter.cli.parser import flags_of_commands

pytestmark = pytest.mark.ci

BASH_COMPLETION = Path("/usr/share/bash-completion/bash_completion")
FLAGS = flags_of_commands(make_parser())
CASES = [
    ("roce-exporter so", set()),
    ("roce-exporter swi", {"switches"}),
    ("roce-exporter --so", {"--source.disable"}),
    ("roce-exporter once --host.simulate pf", {"pfc-storm"}),
    ("roce-exporter once --host.simulate=pf", {"pfc-storm"}),
    ("roce-exporter --metrics.set=", {"lean", "standard", "full"}),
    ("roce-exporter audit --audit.p", {"--audit.profile"}),
    ("roce-exporter wire --que", {"--queue-pairs"}),
]
"""What is typed before Tab, and what the shell proposes."""


def generated(folder: Path, moment: str) -> Path:
    """The folder with everything that generate.py writes."""
    (packages,) = tool_environment("manual").parent.glob("lib/python*/site-packages")
    command = [sys.executable, DEPLOY / "manual/generate.py", folder]
    environment = {**os.environ, "PYTHONPATH": str(packages), "SOURCE_DATE_EPOCH": moment}
    subprocess.run(command, check=True, env=environment)
    return folder


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generated(tmp_path_factory.mktemp("share"), "1700000000")


def page(share: Path, command: str) -> str:
    """A manual page as its reader sees it, on one line."""
    printed = subprocess.run(
        [need("man", "man-db"), "--warnings", "-l", share / f"man/man1/{command}.1"],
        check=True,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "LC_ALL": "C.UTF-8",
            "MANWIDTH": "1000",
            "MAN_KEEP_FORMATTING": "",
            "PAGER": "cat",
        },
    )
    assert printed.stderr == ""
    return printed.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_a_page_has_every_flag_of_its_command(share: Path, command: str) -> None:
    text = page(share, f"roce-exporter-{command}")
    words = set(re.findall(r"--?[a-z][\w.-]*", text))
    assert set(FLAGS[command]) - {"-h", "--help"} <= words
    assert f"roce-exporter-{command} - " in text


def test_the_first_page_has_every_command_and_the_exit_codes(share: Path) -> None:
    text = page(share, "roce-exporter")
    headings = re.findall(r"^[A-Z][A-Z ]+$", text, re.MULTILINE)
    assert headings[:4] == ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"]
    assert {"COMMANDS", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"} <= set(headings)
    assert not [command for command in COMMANDS if f"roce-exporter-{command}(1)" not in text]


def test_mandoc_has_no_warning(share: Path) -> None:
    pages = sorted(share.glob("man/man1/*.1"))
    assert len(pages) == len(COMMANDS) + 1
    checked = subprocess.run(
        [need("mandoc", "mandoc"), "-Tlint", "-Wwarning", *pages], capture_output=True, text=True, check=False
    )
    assert (checked.stdout + checked.stderr, checked.returncode) == ("", 0)


def test_two_builds_are_alike_and_have_the_date_of_the_source(share: Path, tmp_path: Path) -> None:
    again = generated(tmp_path, "1700000000")
    files = [path.relative_to(share) for path in share.rglob("*") if path.is_file()]
    assert len(files) == len(COMMANDS) + 4
    assert not [name for name in files if (share / name).read_bytes() != (again / name).read_bytes()]
    assert '"2023-11-14"' in (share / "man/man1/roce-exporter.1").read_text().splitlines()[0]


@pytest.mark.parametrize(("typed", "proposed"), CASES)
def test_bash_completes(share: Path, typed: str, proposed: set[str]) -> None:
    """As Readline does it: words end at the characters of COMP_WORDBREAKS, of which the equals sign is a word."""
    if not BASH_COMPLETION.exists():
        lacking("bash-completion is not installed (apt-get install bash-completion)")
    words = [word for part in typed.split(" ") for word in re.split(r"(=)", part) if word or part == ""]
    script = (
        f". {BASH_COMPLETION}; . {share}/bash-completion/completions/roce-exporter\n"
        'read -r _ _ _ _ function _ <<<"$(complete -p roce-exporter)"\n'
        'COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); $function 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    shown = subprocess.run(["bash", "-c", script, "bash", *words], check=True, capture_output=True, text=True)
    assert set(shown.stdout.split()) == proposed


@pytest.mark.parametrize(("typed", "proposed"), CASES)
def test_fish_completes(share: Path, typed: str, proposed: set[str]) -> None:
    script = f"source {share}/fish/vendor_completions.d/roce-exporter.fish; complete -C '{typed}'"
    shown = subprocess.run(
        [need("fish", "fish"), "--no-config", "-c", script], check=True, capture_output=True, text=True
    )
    found = {line.split("\t")[0].split("=")[-1] for line in shown.stdout.splitlines()}
    assert found == proposed


@pytest.mark.parametrize(("typed", "proposed"), CASES)
def test_zsh_completes(share: Path, tmp_path: Path, typed: str, proposed: set[str]) -> None:
    """In an interactive zsh with a terminal: complete.zsh presses Tab."""
    output = tmp_path / "proposed"
    output.touch()
    driver = Path(__file__).with_name("complete.zsh")
    command = [need("zsh", "zsh"), "-f", driver, share / "zsh/vendor-completions", output, typed]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    assert set(output.read_text().split()) == proposed
