"""The package that several of these tests need; it is built once for all workers."""

import pytest
from deploy_tools import debian_package
from release_builds import earlier, releases
from tools import need

__all__ = ["earlier", "releases"]
from pathlib import Path


@pytest.fixture(scope="session")
def package() -> Path:
    """The path of the Debian package."""
    need("dpkg-deb")
    return debian_package()
