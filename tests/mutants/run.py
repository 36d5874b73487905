"""Mutation testing: run mutmut, print a table, and fail for a survivor that tests/mutants/README.md does not explain.

Usage: python tests/mutants/run.py [PATTERN ...], where a pattern selects mutants
(`roce_exporter.normalise.normaliser.*`). Results are kept in `mutants/`. Without a pattern everything is tested; with
patterns the other results are kept.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import libcst
import mutmut.__main__ as mutmut
from mutmut.mutation import mutators
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code
from mutmut.utils.file_utils import walk_mutatable_files

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENT = Path("tests/mutants/README.md")
DEAD = ("killed", "timeout", "segfault")
COLUMNS = ("killed", "timeout", "survived", "no tests")


class Mutant(NamedTuple):
    """One change of one function and its result."""

    path: Path
    name: str
    status: str

    @property
    def function(self) -> str:
        """`Class.method` or `function`."""
        return (
            self.name.rpartition(".")[2].partition("__mutmut_")[0].lstrip("x").strip("ǁ_").replace("ǁ", ".")
        )

    def change(self) -> str:
        """The changed lines as one line."""
        lines = get_diff_for_mutant(self.name, path=self.path).splitlines()
        return " ".join(line[1:].strip() for line in lines if line[:1] == "+" and line[:3] != "+++")


def drop_call(node: libcst.Expr) -> Iterator[libcst.Expr]:
    """Omit a call whose result is not used: mutmut changes arguments only, and most closing calls have none."""
    call = node.value.expression if isinstance(node.value, libcst.Await) else node.value
    if isinstance(call, libcst.Call):
        yield node.with_changes(value=libcst.Name("None"))


def copy_tests() -> None:
    """Copy the files that the tests need; mutmut's own copy follows the symbolic links of the recorded hosts in circles."""
    shutil.rmtree("mutants/tests", ignore_errors=True)
    shutil.copytree("tests", "mutants/tests", symlinks=True)
    shutil.copy("pyproject.toml", "mutants/pyproject.toml")


def mutants() -> Iterator[Mutant]:
    """Every mutant of the last run, module after module."""
    for path in sorted(walk_mutatable_files()):
        kept = Path("mutants") / f"{path}.meta"
        if kept.exists():
            for name, code in json.loads(kept.read_text())["exit_code_by_key"].items():
                yield Mutant(path, name, status_by_exit_code[code])


def table(found: list[Mutant]) -> str:
    """The numbers per module, as a table in Markdown."""
    lines = [f"| module | mutants | {' | '.join(COLUMNS)} | killed or timeout |", "| --- |" + " ---: |" * 6]
    for path in (*sorted({mutant.path for mutant in found}), Path()):
        count = Counter(mutant.status for mutant in found if path in (mutant.path, Path()))
        whole, dead = sum(count.values()), sum(count[status] for status in DEAD)
        cells = (whole, *(count[column] for column in COLUMNS), f"{dead / whole:.1%}" if whole else "")
        lines.append(f"| {'all' if path == Path() else f'`{path}`'} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def unexplained(found: list[Mutant]) -> list[str]:
    """The rows that are missing in the document's table of survivors."""
    text = DOCUMENT.read_text()
    rows = {
        f"| `{mutant.path.stem}` `{mutant.function}` | `{mutant.change().replace('|', chr(92) + '|')}` |"
        for mutant in found
        if mutant.status not in (*DEAD, "not checked")
    }
    return sorted(row for row in rows if row not in text)


def main(patterns: list[str]) -> int:
    """Run mutmut and report; returns 1 for an unexplained survivor."""
    # A test that waits for an event that a mutant never causes fails after this many seconds, before mutmut ends the run.
    os.environ.setdefault("PYTEST_TIMEOUT", "6")
    mutators.mutation_operators.append((libcst.Expr, drop_call))
    mutmut.copy_also_copy_files = copy_tests
    if patterns:
        # mutmut would not detect that a test now reaches a function that it did not reach before.
        Path("mutants/mutmut-stats.json").unlink(missing_ok=True)
    else:
        shutil.rmtree("mutants", ignore_errors=True)
    mutmut.cli(
        ["run", "--max-children", os.environ.get("MUTANTS_CHILDREN", "2"), *patterns], standalone_mode=False
    )
    found = list(mutants())
    print(table(found))
    missing = unexplained(found)
    if missing:
        print(f"\nSurvivors that {DOCUMENT} does not explain:", *missing, sep="\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
