"""How figures are printed, and where trees are created."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from trees import write_host

if TYPE_CHECKING:
    from collections.abc import Iterator

    from processes import Figures

MEMORY = "/dev/shm"  # noqa: S108 - a new folder is created in it; in memory, so that no disk is measured


@contextlib.contextmanager
def host(ports: int) -> Iterator[Path]:
    """A sysfs with `ports` ports, until the block ends."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield write_host(Path(folder), ports)


def print_comparison(title: str, figures: list[Figures]) -> None:
    """Figures as a table, with ratios to the first line."""
    first = figures[0]
    print(f"\n### {title}\n")
    print("| exporter | series | p50 ms | p99 ms | CPU ms | RSS MB | p50 ratio | CPU ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for one in figures:
        print(
            f"| {one.name} | {one.series} | {one.p50 * 1e3:.2f} | {one.p99 * 1e3:.2f} | {one.cpu * 1e3:.2f} "
            f"| {one.resident:.1f} | {one.p50 / first.p50:.3f} | {one.cpu / first.cpu:.3f} |",
            flush=True,
        )


def print_row(*cells: object) -> None:
    """One line of a table."""
    print(
        "| " + " | ".join(f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in cells) + " |",
        flush=True,
    )


def print_head(*cells: str) -> None:
    """The first two lines of a table: the first column is text, the others are numbers."""
    print_row(*cells)
    print_row("---", *["---:"] * (len(cells) - 1))
