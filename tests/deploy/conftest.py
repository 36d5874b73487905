"""Files that several of these tests need, and that take long to build."""

from __future__ import annotations

import os
import subprocess

import pytest
from deploy_tools import BUILD, DEPLOY, need


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of the Debian package."""
    need("dpkg-deb", "dpkg")
    folder = tmp_path_factory.mktemp("deb")
    command = [DEPLOY / "deb/build.sh", folder]
    built = subprocess.run(
        command, env={**os.environ, **BUILD}, stdout=subprocess.PIPE, text=True, check=True
    )
    return built.stdout.strip()
