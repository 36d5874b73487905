"""Prometheus agents in front of a store, with the file that is shipped for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml
from deploy_servers import agent_flag
from deploy_storm import FIRST, Clusters, Process, placed
from deploy_tools import need
from ports import free_port

if TYPE_CHECKING:
    from pathlib import Path


def agent(
    shipped: Path, own: Path, replica: str, cluster: str, *, clusters: Clusters, store: tuple[str, str]
) -> Process:
    """An agent in a folder of its own that scrapes a cluster every two seconds; `store` is the shipped address and that of the test."""
    (own / "targets").mkdir(parents=True)
    (own / "targets/roce.yml").write_text(
        yaml.safe_dump([hosts for hosts in clusters.targets() if hosts["labels"]["cluster"] == cluster])
    )
    address, here = store
    places = {
        "interval: 15s": "interval: 2s",
        "timeout: 10s": "timeout: 2s",
        "replica: a": f"replica: {replica}",
        FIRST: cluster,
        address: here,
    }
    (own / "agent.yml").write_text(placed(shipped.read_text(), places))
    program, port = need("prometheus", "prometheus"), free_port()
    command = [
        program,
        f"--config.file={own / 'agent.yml'}",
        f"--storage.agent.path={own / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        agent_flag(program),
    ]
    return Process(command, port, own.with_suffix(".log"))
