"""Manual pages and completion: made from the parser, free of warnings, and used by real shells."""

import os
import re
import sys
from pathlib import Path

import pytest
from deploy_tools import DEPLOY, built, printed, ran, tool_environment
from tools import lacking, need

from roce_exporter.cli.commands import COMMANDS
from roce_exporter.cli.options import flags_of

pytestmark = pytest.mark.ci

BASH_COMPLETION = Path("/usr/share/bash-completion/bash_completion")
CASES = [
    ("roce-exporter so", set()),
    ("roce-exporter tool tr", {"translate"}),
    ("roce-exporter --so", {"--source.disable"}),
    ("roce-exporter once --host.simulate pf", {"pfc-storm"}),
    ("roce-exporter once --host.simulate=pf", {"pfc-storm"}),
    ("roce-exporter --metrics.set=", {"lean", "standard", "full"}),
    ("roce-exporter check --audit.p", {"--audit.profile"}),
    ("roce-exporter wire --que", {"--queue-pairs"}),
]
"""What is typed before Tab, and what the shell proposes."""


def generate(folder: Path) -> None:
    """Fill the folder with everything that generate.py writes."""
    (packages,) = tool_environment("manual").parent.glob("lib/python*/site-packages")
    environment = {**os.environ, "PYTHONPATH": str(packages), "SOURCE_DATE_EPOCH": "1700000000"}
    printed(sys.executable, DEPLOY / "manual/generate.py", folder, env=environment)


@pytest.fixture(scope="module")
def share() -> Path:
    return built("manual", generate)


def page(share: Path, command: str) -> str:
    """A manual page as its reader sees it, on one line."""
    own = {"LC_ALL": "C.UTF-8", "MANWIDTH": "1000", "MAN_KEEP_FORMATTING": "", "PAGER": "cat"}
    done = ran(need("man"), "--warnings", "-l", share / f"man/man1/{command}.1", env={**os.environ, **own})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_each_page_has_every_flag_of_its_command(share) -> None:
    for command in COMMANDS:
        name = f"roce-exporter-{command}".replace(" ", "-")
        text = page(share, name)
        flags = {flag.name for flag in flags_of(command) if flag.name.startswith("-") and not flag.instead}
        assert flags <= set(re.findall(r"--?[a-z][\w.-]*", text)), command
        assert f"{name} - " in text


def test_the_first_page_has_every_command_and_the_exit_codes(share) -> None:
    text = page(share, "roce-exporter")
    headings = re.findall(r"^[A-Z][A-Z ]+$", text, re.MULTILINE)
    assert headings[:4] == ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"]
    assert {"COMMANDS", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"} <= set(headings)
    assert not [
        command for command in COMMANDS if f"roce-exporter-{command.replace(' ', '-')}(1)" not in text
    ]


def test_mandoc_has_no_warning(share) -> None:
    pages = sorted(share.glob("man/man1/*.1"))
    assert len(pages) == len(COMMANDS) + 1
    checked = ran(need("mandoc"), "-Tlint", "-Wwarning", *pages)
    assert (checked.stdout + checked.stderr, checked.returncode) == ("", 0)


def test_two_builds_are_alike_and_have_the_date_of_the_source(share, tmp_path) -> None:
    generate(tmp_path)
    files = [path.relative_to(share) for path in share.rglob("*") if path.is_file()]
    assert len(files) == len(COMMANDS) + 4
    assert not [name for name in files if (share / name).read_bytes() != (tmp_path / name).read_bytes()]
    assert '"2023-11-14"' in (share / "man/man1/roce-exporter.1").read_text().splitlines()[0]


def test_bash_completes(share) -> None:
    """As Readline does it: words end at the characters of COMP_WORDBREAKS, of which the equals sign is a word."""
    if not BASH_COMPLETION.exists():
        lacking("bash-completion is not installed (apt-get install bash-completion)")
    script = (
        f". {BASH_COMPLETION}; . {share}/bash-completion/completions/roce-exporter\n"
        'read -r _ _ _ _ function _ <<<"$(complete -p roce-exporter)"\n'
        'COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); $function 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    for typed, proposed in CASES:
        words = [word for part in typed.split(" ") for word in re.split(r"(=)", part) if word or part == ""]
        assert set(printed("bash", "-c", script, "bash", *words).split()) == proposed, typed


def test_fish_completes(share) -> None:
    for typed, proposed in CASES:
        script = f"source {share}/fish/vendor_completions.d/roce-exporter.fish; complete -C '{typed}'"
        lines = printed(need("fish"), "--no-config", "-c", script).splitlines()
        assert {line.split("\t")[0].split("=")[-1] for line in lines} == proposed, typed


def test_zsh_completes(share, tmp_path) -> None:
    """In an interactive zsh with a terminal: complete.zsh presses Tab."""
    for typed, proposed in CASES:
        output = tmp_path / "proposed"
        output.write_text("")
        driver = Path(__file__).with_name("complete.zsh")
        printed(need("zsh"), "-f", driver, share / "zsh/vendor-completions", output, typed, timeout=300)
        assert set(output.read_text().split()) == proposed, typed
