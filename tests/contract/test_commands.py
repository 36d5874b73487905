"""The two commands of the README: what it shows, and what an old Python prints. tests/clean_roots.sh runs them."""

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OLD = """#!/bin/sh
[ "$1" = --version ] && echo Python 3.10.12
exit 1
"""


def test_the_readme_shows_each_command_alone() -> None:
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert [block for block in blocks if "try.sh" in block or "run.sh" in block][:2] == [
        "sh deploy/try.sh\n",
        "sh tests/run.sh\n",
    ]


@pytest.mark.parametrize("script", ["deploy/try.sh", "tests/run.sh"])
def test_an_old_python_is_one_line_with_the_remedy(script, tmp_path) -> None:
    (tmp_path / "python3").write_text(OLD)
    (tmp_path / "python3").chmod(0o755)
    for program in ("dirname", "date"):
        (tmp_path / program).symlink_to(str(shutil.which(program)))
    done = subprocess.run(
        [str(shutil.which("sh")), ROOT / script],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        f"{Path(script).name}: needs Python 3.11 or newer, and python3 is Python 3.10.12. "
    )
    assert "uv python install" in line
    assert (done.returncode, done.stdout) == (2, "")


def test_the_package_says_the_same_where_it_is_not_installed(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 12))
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("roce_exporter", run_name="__main__")
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("roce-exporter: needs Python 3.11 or newer; ")
