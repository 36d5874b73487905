"""docs/tutorial.md: every command of it runs, in one shell and a clean clone, and prints what the document shows.

`...` in an output of the document is any text; blanks are compared as one blank (the options of doctest with these names).
"""

import contextlib
import doctest
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from deploy_tools import ROOT, ran
from servers import kept_port
from tools import need

TEXT = (ROOT / "docs/tutorial.md").read_text()
STEP = re.compile(r"```sh\n(.*?)```\n(?:\s*```text\n(.*?)```)?", re.DOTALL)
PORTS = ("EXPORTER_PORT", "PROMETHEUS_PORT", "ALERTMANAGER_PORT", "PAGER_PORT")
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Step(NamedTuple):
    """A block of commands and the output that the document shows."""

    commands: str
    output: str


STEPS = [Step(commands, output or "") for commands, output in STEP.findall(TEXT)]


@pytest.fixture
def clone(tmp_path) -> Path:
    """A clone of the last commit."""
    git = need("git")
    if not (ROOT / ".git").exists():
        pytest.skip("only a checkout can be cloned")
    place = tmp_path / "clone"
    command = [git, "-c", "safe.directory=*", "clone", "--quiet", "--no-local", "--depth=1"]
    subprocess.run([*command, f"file://{ROOT}", place], check=True)
    return place


@pytest.fixture
def surroundings(tmp_path) -> dict[str, str]:
    """The environment of the shell: free ports and a folder of its own. All packages are installed, so that the first command installs none."""
    for program in ("prometheus", "promtool", "amtool", "alertmanager", "redis-server", "curl"):
        need(program)
    ports = {name: str(kept_port()) for name in PORTS}
    return {**os.environ, **ports, "LAB": str(tmp_path / "lab"), "LC_ALL": "C.UTF-8"}


def script(steps: list[Step]) -> str:
    """The commands of all steps with a line between the outputs of two; it ends at the first command that fails."""
    return "set -e\n" + "".join(
        f"{step.commands}echo '--- end of step {n}'\n" for n, step in enumerate(steps)
    )


def outputs(printed: str) -> list[str]:
    """What each step has printed; the last is what came after the last step that ended."""
    return re.split(r"--- end of step \d+\n", printed)


def same(output: str, printed: str) -> bool:
    """Whether a step has printed what the document shows."""
    return doctest.OutputChecker().check_output(output, printed, OPTIONS)


def end_session(session: int) -> list[str]:
    """End what is left of a session, and return it."""
    left = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                left.append(" ".join(process.cmdline()))
                process.send_signal(signal.SIGKILL)
    return left


@pytest.mark.nightly
@pytest.mark.timeout(3600)  # every step waits for what it shows
def test_every_command_prints_what_the_document_shows(clone, surroundings, tmp_path) -> None:
    """Nothing is left: no process, no file outside the clone, no change in it."""
    (tmp_path / "tutorial.sh").write_text(script(STEPS))
    with (tmp_path / "printed").open("w+") as printed:
        shell = subprocess.Popen(
            ["bash", tmp_path / "tutorial.sh"],
            cwd=clone,
            env=surroundings,
            stdout=printed,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            status = shell.wait()
        finally:
            left = end_session(shell.pid)
            shell.wait()
        printed.seek(0)
        found = outputs(printed.read())
    for step, text in zip(STEPS, found, strict=False):
        assert same(step.output, text), f"{step.commands}\nprinted:\n{text}\nthe document has:\n{step.output}"
    assert (status, found[-1], len(found)) == (0, "", len(STEPS) + 1)
    assert left == []
    assert not (tmp_path / "lab").exists()


def test_the_document_has_its_steps_and_all_are_shell() -> None:
    """A block that the expression does not find would not be run."""
    assert len(STEPS) == TEXT.count("```sh") > 20
    assert sum(bool(step.output) for step in STEPS) == TEXT.count("```text")
    assert TEXT.count("```") == 2 * (TEXT.count("```sh") + TEXT.count("```text"))
    parsed = ran("bash", "-n", input=script(STEPS))
    assert (parsed.returncode, parsed.stderr) == (0, "")
