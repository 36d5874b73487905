"""A real Alertmanager with our configuration, whose receivers are web hooks of the tests."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml
from alert_hooks import Alertmanager, Hooks, hooked, need
from ports import free_port
from waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def promtool() -> str:
    return need("promtool")


@pytest.fixture(scope="session")
def amtool() -> str:
    return need("amtool")


@pytest.fixture(scope="session")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    program = need("prometheus-alertmanager", "alertmanager")
    folder = tmp_path_factory.mktemp("alertmanager")
    hooks = Hooks()
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(hooked(hooks)))
    address = f"127.0.0.1:{free_port()}"
    command = [
        program,
        f"--config.file={folder}/alertmanager.yml",
        f"--storage.path={folder}/data",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    running = Alertmanager(f"http://{address}", hooks)
    try:
        wait_until(lambda: running.ask("/api/v2/status"), 120)
        yield running
    finally:
        process.terminate()
        process.wait(60)
        hooks.close()
