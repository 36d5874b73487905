"""The tasks of the Makefile: all are listed and documented, documented ones exist, and `generate` runs every generator."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Makefile").read_text()
TARGETS = re.findall(r"^([a-z]+):.* ## ", TEXT, re.MULTILINE)
DOCUMENTS = [
    ROOT / name
    for name in (
        "README.md",
        "CONTRIBUTING.md",
        ".github/pull_request_template.md",
        "dashboards/preview/README.md",
    )
] + sorted((ROOT / "docs").glob("*.md"))


def would_run(target: str) -> str:
    if not shutil.which("make"):
        pytest.skip("no make")
    shown = subprocess.run(
        ["make", "--no-print-directory", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return shown.stdout


def test_every_task_is_listed() -> None:
    assert re.findall(r"^\.PHONY: (.*)", TEXT, re.MULTILINE) == [" ".join(TARGETS)]
    assert set(re.findall(r"^([a-z]+):", TEXT, re.MULTILINE)) == set(TARGETS)


@pytest.mark.parametrize("target", TARGETS)
def test_a_task_runs_what_is_there(target: str) -> None:
    commands = would_run(target)
    assert commands
    for file in re.findall(r"\b(?:tests|alerts|dashboards|bench)/[\w/]+\.(?:py|sh)\b", commands):
        assert (ROOT / file).exists()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda place: place.name)
def test_every_task_that_a_document_names_exists(document: Path) -> None:
    assert set(re.findall(r"`make ([a-z]+)", document.read_text())) <= set(TARGETS)


def test_contributing_explains_every_task() -> None:
    named = re.findall(r"`make ([a-z]+)", (ROOT / "CONTRIBUTING.md").read_text())
    assert set(TARGETS) - {"help"} <= set(named)


def test_the_test_task_is_the_readme_s_test_command() -> None:
    command = would_run("test").strip()
    assert command in (ROOT / "README.md").read_text()


def test_generate_runs_every_generator() -> None:
    commands = would_run("generate")
    generators = {
        "alerts/generate.py",
        "dashboards/generate.py",
        "deploy/mixin/generate.py",
        "deploy/windows/generate.py",
        "tests/deploy/write_kustomize.py",
        "tests/deploy/write_chart_readme.py",
        "tests/drift/table.py",
        "--rewrite-golden",
    }
    assert not {
        name for name in (*generators, "docs/metrics.md", "write_annotations.py") if name not in commands
    }
