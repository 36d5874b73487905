"""The tasks of the Makefile: all are listed and documented, documented ones exist, and `generate` runs every generator."""

import re
import subprocess
from pathlib import Path

import pytest
from tools import need

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z-]+):.* ## ", TEXT, re.MULTILINE))
NAMED = {
    place: set(re.findall(r"`make ([a-z-]+)", place.read_text()))
    for place in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/preview/*.md"), *ROOT.glob(".github/*.md"))
}  # fmt: skip


def would_run(target: str) -> str:
    command = [need("make"), "--no-print-directory", "-n", target]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_every_task_is_listed_and_explained_and_every_task_named_exists() -> None:
    (listed,) = re.findall(r"^\.PHONY: (.*)", TEXT, re.MULTILINE)
    assert set(listed.split()) == TARGETS == set(re.findall(r"^([a-z-]+):", TEXT, re.MULTILINE))
    assert {place.name: found - TARGETS for place, found in NAMED.items() if found - TARGETS} == {}
    assert TARGETS - {"help"} <= NAMED[ROOT / "CONTRIBUTING.md"]


@pytest.mark.ci
def test_a_task_runs_what_is_there() -> None:
    for target in TARGETS:
        files = re.findall(
            r"(?:tests|alerts|dashboards|bench|deploy)/[\w/.-]+\.(?:py|sh)\b", would_run(target)
        )
        assert [file for file in files if not (ROOT / file).exists()] == [], target


@pytest.mark.ci
def test_the_test_task_is_the_readme_s_test_command() -> None:
    command = would_run("test").strip()
    assert command
    assert command in (ROOT / "README.md").read_text()


@pytest.mark.ci
def test_generate_runs_every_generator() -> None:
    patterns = (
        "*/generate.py",
        "*/*/generate.py",
        "tests/*/write_*.py",
        "alerts/compat_rules.py",
        "tests/alerts/migration_tables.py",
        "tests/drift/table.py",
    )
    generators = {place.relative_to(ROOT).as_posix() for one in patterns for place in ROOT.glob(one)}
    generators -= {"deploy/manual/generate.py", "deploy/mixin/generate.py"}  # write no committed file
    assert len(generators) > 7
    commands = would_run("generate")
    assert [
        name for name in (*generators, "--rewrite-golden", "docs/metrics.md") if name not in commands
    ] == []
