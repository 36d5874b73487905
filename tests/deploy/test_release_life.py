"""What users download is installed, serves, is upgraded with its settings, goes back, and leaves nothing."""

import os
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest
from deploy_tools import ROOT, printed
from release_builds import EARLIER, VERSION
from release_check import LIFE
from tools import need

pytestmark = pytest.mark.nightly

SERIES = "\nroce_ecn_marked_packets_total{"


class InEnvironment:
    """By pip, next to the locked libraries."""

    pattern = "*.whl"

    def __init__(self, folder: Path) -> None:
        """An environment without it."""
        self.folder = folder
        venv.create(folder, with_pip=True)
        self.pip(
            "install", "--require-hashes", "--only-binary=:all:", f"--requirement={ROOT}/requirements.lock"
        )

    def pip(self, *arguments: str) -> None:
        """Pip of the environment."""
        command = [
            self.folder / "bin/python",
            "-m",
            "pip",
            "--quiet",
            "--disable-pip-version-check",
            *arguments,
        ]
        subprocess.run(command, check=True)

    def put(self, release: Path) -> None:
        """Install it without its dependencies, which are there."""
        (path,) = release.glob(self.pattern)
        self.pip("install", "--no-deps", str(path))

    def run(self, *arguments: str) -> str:
        """Without what the environment of the tests adds to Python's path."""
        return printed(self.folder / "bin/roce-exporter", *arguments, env={"PATH": os.defpath})

    def remove(self) -> list[Path]:
        """Uninstall it."""
        self.pip("uninstall", "--yes", "roce-exporter")
        return list(self.folder.rglob("*roce*exporter*"))


class FromSource(InEnvironment):
    """By pip, which builds it."""

    pattern = "roce_exporter-*.tar.gz"


class OneFile:
    """A file that is copied into a folder, and a folder in the user's cache."""

    def __init__(self, folder: Path) -> None:
        """No file."""
        self.folder = folder
        folder.mkdir()

    def put(self, release: Path) -> None:
        """Replace the file."""
        (path,) = release.glob("*.pyz")
        shutil.copy(path, self.folder / "roce-exporter")

    def run(self, *arguments: str) -> str:
        """With a home of its own."""
        command = (sys.executable, "-I", self.folder / "roce-exporter", *arguments)
        return printed(*command, env={"XDG_CACHE_HOME": f"{self.folder}/cache"})

    def remove(self) -> list[Path]:
        """The two places that docs/operating.md names."""
        (self.folder / "roce-exporter").unlink()
        shutil.rmtree(self.folder / "cache/roce-exporter")
        return [path for path in self.folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(InEnvironment, marks=pytest.mark.release("wheel", *LIFE), id="wheel"),
        pytest.param(FromSource, marks=pytest.mark.release("sdist", *LIFE), id="sdist"),
        pytest.param(OneFile, marks=pytest.mark.release("zipapp", *LIFE), id="zipapp"),
    ],
)
def test_install_first_metric_upgrade_way_back_and_removal(way, releases, earlier, tmp_path) -> None:
    settings = tmp_path / "roce-exporter.yml"
    settings.write_text("host.simulate: quiet\n")
    installed = way(tmp_path / "place")
    for release, version in ((earlier, EARLIER), (releases.first, VERSION), (earlier, EARLIER)):
        installed.put(release)
        assert version in installed.run("--version")
        assert SERIES in installed.run("once", f"--config.file={settings}")
    assert installed.remove() == []
    assert settings.exists()


@pytest.mark.release("rules", "install")
def test_promtool_accepts_every_file_of_rules_in_the_archive(releases, tmp_path) -> None:
    (archive,) = releases.first.glob("*-alerts.tar.gz")
    with tarfile.open(archive) as members:
        members.extractall(tmp_path, filter="data")
    rules = sorted(tmp_path.rglob("*.rules.yml"))
    assert rules
    printed(need("promtool"), "check", "rules", *rules)
