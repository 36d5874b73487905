"""What users download is installed, serves, is upgraded with its settings, goes back, and leaves nothing."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import urllib.request
import venv
from pathlib import Path
from typing import Any

import pytest
import servers
import yaml
from _gojsonnet import evaluate_snippet
from deploy_tools import ROOT, printed
from release_builds import EARLIER, VERSION
from release_check import LIFE
from tools import cache_folder, need
from waiting import wait_until

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


def unpacked(release: Path, kind: str, folder: Path) -> Path:
    """The folder that an archive of the release unpacks into."""
    (archive,) = release.glob(f"*-{kind}.tar.gz")
    with tarfile.open(archive) as members:
        members.extractall(folder, filter="data")
    (place,) = folder.glob(f"*-{kind}")
    return place


def test_promtool_accepts_every_file_of_rules_in_the_archive(releases, tmp_path) -> None:
    rules = sorted(unpacked(releases.first, "alerts", tmp_path).rglob("*.rules.yml"))
    assert rules
    printed(need("promtool"), "check", "rules", *rules)


def rules_of_the_archive(release: Path, folder: Path) -> str:
    """The rules as they are shipped."""
    return (unpacked(release, "alerts", folder) / "roce.rules.yml").read_text()


def rules_of_the_mixin(release: Path, folder: Path) -> str:
    """Rendered, with a setting of the user's own: JSON is YAML."""
    mine = "_config+:: { alerts+: { RoceExporterDown+: { severity: 'critical' } } }"
    snippet = f"((import 'mixin.libsonnet') + {{ {mine} }}).prometheusAlerts"
    return evaluate_snippet("life", snippet, jpathdir=[str(unpacked(release, "mixin", folder))])


@pytest.mark.parametrize(
    ("rules_of", "severity"),
    [
        pytest.param(
            rules_of_the_archive, "warning", marks=pytest.mark.release("rules", *LIFE), id="archive"
        ),
        pytest.param(rules_of_the_mixin, "critical", marks=pytest.mark.release("mixin", *LIFE), id="mixin"),
    ],
)
def test_a_prometheus_keeps_series_and_pending_alerts_through_an_upgrade_of_the_rules_and_the_way_back(
    rules_of, severity, releases, earlier, tmp_path
) -> None:
    """Of a simulated host, and of one that answered once and no longer does: its alert pends for minutes."""
    rules = tmp_path / "loaded/roce.rules.yml"
    rules.parent.mkdir()
    since = set()
    with servers.exporter(tmp_path / "one", "--host.simulate=quiet") as host, contextlib.ExitStack() as stack:
        gone = stack.enter_context(servers.exporter(tmp_path / "gone", "--host.simulate=quiet"))
        job = {"job_name": "roce", "static_configs": [{"targets": [host.address, gone.address]}]}
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "scrape_configs": [job]}
        config["rule_files"] = [f"{rules.parent}/*.yml"]
        with servers.prometheus(tmp_path / "prometheus", config, "--web.enable-lifecycle") as server:
            for number, release in enumerate((earlier, releases.first, earlier)):
                text = rules_of(release, tmp_path / f"unpacked{number}")
                rules.write_text(text)
                assert reloaded(server) == {group["name"] for group in yaml.safe_load(text)["groups"]}
                if not since:
                    wait_until(lambda: server.query("source:roce_runbooks:info"))
                    wait_until(lambda: server.query("count(host:roce_exporter_answered:info) == 2"))
                    stack.close()
                (down,) = wait_until(lambda: down_alerts(server))
                assert down["labels"]["severity"] == severity
                since.add(down["activeAt"])
            assert len(since) == 1, "the alert began anew"
            rules.unlink()
            assert reloaded(server) == set()
            assert server.query("count_over_time(source:roce_runbooks:info[1h])")
            assert down_alerts(server) == []


def reloaded(server: servers.Running) -> set[str]:
    """The names of the groups of rules after Prometheus has read its files again."""
    with urllib.request.urlopen(f"{server.url}/-/reload", data=b"") as reply:
        assert reply.status == 200
    return {group["name"] for group in server.ask("rules")["groups"]}


def down_alerts(server: servers.Running) -> list[dict[str, Any]]:
    """The pending alerts of the host that no longer answers."""
    return [one for one in server.ask("alerts")["alerts"] if one["labels"]["alertname"] == "RoceExporterDown"]


@pytest.mark.release("dashboards", "install")
def test_every_board_of_the_archive_is_one_that_importer_and_schema_take(releases, tmp_path) -> None:
    """tests/dashboards gives these files to Perses' importer and to Grafana's schemas."""
    place = unpacked(releases.first, "dashboards", tmp_path)
    boards = {path.name: path.read_bytes() for path in place.glob("*.json")}
    assert boards == {path.name: path.read_bytes() for path in (ROOT / "dashboards").glob("*.json")}
    importer, schemas = need("perses_import"), cache_folder() / "perses/cue/schemas"
    for name in boards:
        spec = json.loads(printed(importer, schemas, place / name))["spec"]
        assert spec["panels"]
