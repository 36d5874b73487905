"""The locked dependencies and the bill of materials match pyproject.toml. `deploy/lock.sh` writes them."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
import venv
from typing import TYPE_CHECKING, Any

import pytest
from deploy_tools import DEPLOY, ROOT, lacking
from deploy_tools import PACKAGES as TOOLS
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import roce_exporter
from roce_exporter.cli.demo import RICH_IS_MISSING

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WANTED = {
    "requirements.lock": PROJECT["project"]["dependencies"],
    "requirements-demo.lock": [
        *PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"]["demo"],
    ],
    "requirements-switches.lock": [
        *PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"]["sonic"],
        *PROJECT["project"]["optional-dependencies"]["gnmi"],
    ],
    "requirements-wire.lock": [
        *PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"]["wire"],
    ],
    "deploy/manual/requirements.lock": TOOLS["manual"],
    "requirements-build.lock": PROJECT["build-system"]["requires"],
    "requirements-test.lock": [
        *PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"]["test"],
    ],
}
ENTRY = re.compile(
    r"^([a-z0-9][a-z0-9.-]*)==(\S+) \\\n((?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE
)


def locked(name: str) -> dict[str, str]:
    """The versions that a lock file names, each with at least one hash."""
    return {project: version for project, version, _ in ENTRY.findall((ROOT / name).read_text())}


@pytest.mark.parametrize("name", WANTED)
def test_every_dependency_is_locked_to_a_version_that_fits(name: str) -> None:
    versions = locked(name)
    for requirement in map(Requirement, WANTED[name]):
        assert canonicalize_name(requirement.name) in versions, f"{requirement.name}: run deploy/lock.sh"
        assert versions[canonicalize_name(requirement.name)] in requirement.specifier, requirement


@pytest.mark.parametrize("name", WANTED)
def test_every_line_is_a_version_with_hashes_and_no_index_is_named(name: str) -> None:
    text = (ROOT / name).read_text()
    assert not re.sub(r"^ *#.*\n", "", ENTRY.sub("", text), flags=re.MULTILINE).strip()


def test_the_demo_is_in_the_zipapp_only() -> None:
    """The container and the Debian package install requirements.lock; they are the daemon's."""
    extras = PROJECT["project"]["optional-dependencies"]
    assert set(extras["demo"]) <= set(extras["test"])
    demo = {canonicalize_name(Requirement(text).name) for text in extras["demo"]}
    assert demo
    assert not demo & locked("requirements.lock").keys()
    assert demo <= locked("requirements-demo.lock").keys()


def test_tests_run_with_the_shipped_versions() -> None:
    shipped = locked("requirements.lock")
    assert shipped.items() <= locked("requirements-switches.lock").items()
    assert locked("requirements-switches.lock").items() <= locked("requirements-test.lock").items()
    assert shipped.items() <= locked("requirements-demo.lock").items()
    assert locked("requirements-demo.lock").items() <= locked("requirements-test.lock").items()
    assert shipped.items() <= locked("requirements-wire.lock").items()
    assert locked("requirements-wire.lock").items() <= locked("requirements-test.lock").items()
    assert shipped.items() <= locked("requirements-test.lock").items()


BILLS = {"sbom.cdx.json": "requirements.lock", "sbom-zipapp.cdx.json": "requirements-demo.lock"}


@pytest.fixture(params=BILLS)
def bill(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def materials(bill: str) -> dict[str, Any]:
    return dict(json.loads((DEPLOY / bill).read_text()))


def test_the_bill_of_materials_lists_the_locked_versions(bill: str, materials: dict[str, Any]) -> None:
    components = {canonicalize_name(one["name"]): one["version"] for one in materials["components"]}
    assert components == locked(BILLS[bill])
    assert (materials["bomFormat"], materials["specVersion"]) == ("CycloneDX", "1.5")
    root = materials["metadata"]["component"]
    assert (root["name"], root["version"]) == (PROJECT["project"]["name"], roce_exporter.__version__)


def test_every_component_has_a_licence_and_an_address_by_which_scanners_know_it(
    materials: dict[str, Any],
) -> None:
    for component in materials["components"]:
        assert component["purl"] == f"pkg:pypi/{canonicalize_name(component['name'])}@{component['version']}"
        assert component["licenses"]


def test_dependencies_between_components_are_listed(bill: str, materials: dict[str, Any]) -> None:
    root = materials["metadata"]["component"]["bom-ref"]
    needs = {one["ref"]: one.get("dependsOn", []) for one in materials["dependencies"]}
    direct = {canonicalize_name(reference.split("==")[0]) for reference in needs[root]}
    assert direct == {canonicalize_name(Requirement(text).name) for text in WANTED[BILLS[bill]]}


def test_the_exporter_installs_and_runs_from_the_lock_alone(tmp_path: Path) -> None:
    """The commands are those of SECURITY.md, except that the exporter itself is the one under test."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    command = [python, "-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary=:all:"]
    installed = subprocess.run(
        [*command, f"--requirement={ROOT}/requirements.lock"], capture_output=True, text=True, check=False
    )
    if "No matching distribution" in installed.stderr or "Connection" in installed.stderr:
        lacking(f"the package index cannot be reached: {installed.stderr.strip()[-200:]}")
    assert installed.returncode == 0, installed.stderr
    (tmp_path / "exporter").mkdir()
    (tmp_path / "exporter/roce_exporter").symlink_to(roce_exporter.__path__[0])
    code = (
        f"import sys; sys.path[:0] = [{str(tmp_path / 'exporter')!r}];"
        "from roce_exporter.cli import main; sys.exit(main())"
    )
    command = [python, "-I", "-c", code]
    answer = subprocess.run(
        [*command, "once", "--host.simulate=quiet"], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert "\nroce_ecn_marked_packets_total{" in answer.stdout
    demo = subprocess.run([*command, "demo"], capture_output=True, text=True, check=False)
    assert (demo.returncode, demo.stdout) == (2, "")
    assert demo.stderr == f"roce-exporter: {RICH_IS_MISSING}\n"
