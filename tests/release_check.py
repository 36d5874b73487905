"""`make release-check`: everything that is published, built twice, installed, upgraded, rolled back and removed; a table of artefacts, steps and results.

A test says what it proves with `@pytest.mark.release(ARTEFACT, STEP, ...)`. `PROMISED` lists the cells that need a proof; a cell without a passed
test is a failure, so that an artefact without a test cannot look green. What needs an account, a cluster or hardware is in docs/releasing.md.
As root, after `tests/tools.sh nightly`; it takes minutes.
"""

import sys
from pathlib import Path

import pytest

STEPS = ("bytes", "signed", "install", "metric", "upgrade", "rollback", "remove")
"""Two builds are equal, its checksum is in the signed list; in a clean place: installed, first metric, settings kept by an upgrade and by the
way back, nothing left."""
LIFE = STEPS[2:]
HUNG_SECONDS = 3 * 3600
"""Of what hangs alone: the first test of a release waits for two builds, of the image for three roots, which on a busy machine take an hour."""
PROMISED: dict[str, tuple[str, ...]] = {
    "wheel": STEPS,
    "sdist": STEPS,
    "zipapp": STEPS,
    "deb": STEPS,
    "rpm": STEPS,
    "apt repository": STEPS,
    "image": STEPS,
    "chart": STEPS,
    "mixin": STEPS,
    "dashboards": ("bytes", "signed", "install"),
    "rules": STEPS,
    "bill of materials": ("bytes", "signed", "install"),
    "provenance": ("bytes", "signed", "install"),
    "checksums": ("bytes", "signed"),
}
"""An image is run by buildah, a chart is validated against the schemas of Kubernetes and lives in an API server that has no nodes (its test runs, but in no pod), a mixin and rules
live in a Prometheus, a bill lists what is inside, a provenance every file: no registry and no node is at hand. Perses imports dashboards, for there is no Grafana; its importer keeps
nothing, so there is no upgrade."""
Cell = tuple[str, str]


class Proofs:
    """A plugin of pytest that keeps, for each cell, how its tests ended."""

    def __init__(self) -> None:
        """No cell has a result."""
        self.cells: dict[str, list[Cell]] = {}
        self.results: dict[Cell, set[str]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Read the markers; a cell that is not promised is a mistake in the test."""
        for item in items:
            for mark in item.iter_markers("release"):
                artefact, *steps = mark.args
                wrong = [step for step in steps if step not in PROMISED.get(artefact, ())]
                if wrong or not steps:
                    raise pytest.UsageError(f"{item.nodeid}: {artefact} promises no {wrong or 'step'}")
                self.cells.setdefault(item.nodeid, []).extend((artefact, step) for step in steps)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that failed while it was set up has failed."""
        if report.when == "call" or not report.passed:
            for cell in self.cells.get(report.nodeid, ()):
                self.results.setdefault(cell, set()).add(report.outcome)


def result_of(results: set[str]) -> str:
    """The word in the table: the worst of the results of a cell."""
    for outcome, word in (("failed", "FAILED"), ("skipped", "skipped"), ("passed", "ok")):
        if outcome in results:
            return word
    return "NO TEST"


def table(results: dict[Cell, set[str]]) -> tuple[list[str], bool]:
    """The lines of the table, and whether each promised cell is proved."""
    rows = [["artefact", *STEPS]]
    for artefact, promised in PROMISED.items():
        words = (
            result_of(results.get((artefact, step), set())) if step in promised else "-" for step in STEPS
        )
        rows.append([artefact, *words])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return lines, all(word in {"ok", "-"} for row in rows[1:] for word in row[1:])


def main() -> int:
    """Run the tests with the marker, print the table; 0 if all of it is green."""
    proofs = Proofs()
    here = Path(__file__).parent
    words = ["-m", "release", "-q", f"--timeout={HUNG_SECONDS}", *sys.argv[1:]]
    code = pytest.main([str(here / "deploy"), *words], plugins=[proofs])
    lines, proved = table(proofs.results)
    sys.stdout.write("\n".join([*lines, ""]))
    return 0 if code == pytest.ExitCode.OK and proved else 1


if __name__ == "__main__":
    sys.exit(main())
