"""A Prometheus on a history that is written into its blocks; it scrapes nothing."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

from deploy_servers import Server, prometheus
from deploy_tools import need

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOOKBACK = "30s"
"""A history has no staleness markers: a window of two scrapes replaces them."""


def backfill(folder: Path, name: str, lines: list[str]) -> None:
    """Add lines to Prometheus' blocks while it does not run."""
    path = folder / f"{name}.om"
    path.write_text("\n".join([*lines, "# EOF\n"]))
    command = [
        need("promtool", "prometheus"),
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        path,
        folder / "tsdb",
    ]
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def on_blocks(folder: Path) -> Iterator[Server]:
    """Prometheus on the blocks of a folder; it scrapes nothing."""
    config = folder / "nothing.yml"
    config.write_text("global: {}\n")
    flags = ("--storage.tsdb.retention.time=100y", f"--query.lookback-delta={LOOKBACK}")
    with prometheus(need("prometheus", "prometheus"), config, folder, *flags) as server:
        yield server
