"""The locked dependencies match pyproject.toml, and the bill of materials lists them. `deploy/lock.sh` writes the locks."""

import re
import sys
import tomllib
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions, version
from pathlib import Path

import pytest
from deploy_tools import DEPLOY, PACKAGES, ROOT, module_of, printed, ran
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools import lacking

import roce_exporter
from roce_exporter.cli.demo import RICH_IS_MISSING
from roce_exporter.cli.flags import DEFAULT_PORT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DAEMON = PROJECT["project"]["dependencies"]
EXTRAS = PROJECT["project"]["optional-dependencies"]
WANTED = {
    "requirements.lock": DAEMON,
    "requirements-demo.lock": [*DAEMON, *EXTRAS["demo"]],
    "requirements-switches.lock": [*DAEMON, *EXTRAS["sonic"], *EXTRAS["gnmi"]],
    "requirements-wire.lock": [*DAEMON, *EXTRAS["wire"]],
    "requirements-test.lock": [*DAEMON, *EXTRAS["test"]],
    "requirements-build.lock": PROJECT["build-system"]["requires"],
    "deploy/manual/requirements.lock": PACKAGES["manual"],
    "docs/generate/requirements.lock": PACKAGES["site"],
}
ENTRY = re.compile(
    r"^([a-z0-9][a-z0-9.-]*)==(\S+) \\\n((?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE
)
BILLS = {"requirements.lock": (), "requirements-demo.lock": ("demo",)}
"""The lock files with a bill of materials, and the extras in them."""


def locked(name: str) -> dict[str, str]:
    """The versions that a lock file names, each with at least one hash."""
    return {project: version for project, version, _ in ENTRY.findall((ROOT / name).read_text())}


@pytest.mark.parametrize("name", WANTED)
def test_every_dependency_is_locked_with_hashes_to_a_version_that_fits(name) -> None:
    versions = locked(name)
    for requirement in map(Requirement, WANTED[name]):
        assert canonicalize_name(requirement.name) in versions, f"{requirement.name}: run deploy/lock.sh"
        assert versions[canonicalize_name(requirement.name)] in requirement.specifier, requirement
    text = (ROOT / name).read_text()
    rest = re.sub(r"^ *#.*\n", "", ENTRY.sub("", text), flags=re.MULTILINE).strip()
    assert rest == "", "no index is named"


def test_the_texts_for_registries_say_what_the_project_says() -> None:
    text = (DEPLOY / "release/publishing.md").read_text()
    mail = re.findall(r"```text\n(To: .*?)```", text, re.DOTALL)[0]
    head, body = mail.split("\n\n", 1)
    assert head.startswith("To: submit@bugs.debian.org\nSubject: ITP: prometheus-roce-exporter -- ")
    fields = dict(re.findall(r"^[* ] ?([A-Z][\w ]+?) *: (.+)$", body, re.MULTILINE))
    home = PROJECT["project"]["urls"]["Homepage"]
    assert (fields["Version"], fields["URL"], fields["License"]) == (
        roce_exporter.__version__,
        home,
        PROJECT["project"]["license"]["text"],
    )
    names = {canonicalize_name(Requirement(one).name).removeprefix("py") for one in DAEMON}
    assert set(re.findall(r"python3-([\w-]+)", body)) == {*names, "hatchling"}
    assert f"> * {DEFAULT_PORT} - [RoCE exporter]({home})" in text


def test_the_supported_versions_have_their_dates() -> None:
    """Of this minor release, and of the Pythons of the classifiers."""
    text = (ROOT / "SECURITY.md").read_text()
    minor = re.escape(roce_exporter.__version__.rpartition(".")[0])
    assert re.search(rf"^\| {minor} \| [^|]+ \| [^|]+ \| [^|]+ \|$", text, re.MULTILINE)
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    ((pythons, dates),) = re.findall(r"^\| Python ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE)
    assert pythons.split(", ") == named
    assert [bool(re.fullmatch(r"20\d\d-\d\d", date)) for date in dates.split(", ")] == [True] * len(named)


def test_the_demo_is_in_the_zipapp_only() -> None:
    """The container and the Debian package install requirements.lock; they are the daemon's."""
    demo = {canonicalize_name(Requirement(text).name) for text in EXTRAS["demo"]}
    assert demo
    assert not demo & locked("requirements.lock").keys()
    assert demo <= locked("requirements-demo.lock").keys()


def test_tests_run_with_the_shipped_versions() -> None:
    for name in ("requirements-demo.lock", "requirements-switches.lock", "requirements-wire.lock"):
        assert locked("requirements.lock").items() <= locked(name).items()
        assert locked(name).items() <= locked("requirements-test.lock").items()


def metadata_of(folder: Path) -> Iterator[Distribution]:
    """The exporter's own metadata, as a wheel has them, and those of the installed packages."""
    place = folder / f"roce_exporter-{roce_exporter.__version__}.dist-info/METADATA"
    place.parent.mkdir()
    extras = [f'{text}; extra == "{name}"' for name, texts in EXTRAS.items() for text in texts]
    lines = [f"Requires-Dist: {text}" for text in (*DAEMON, *extras)]
    head = ("Metadata-Version: 2.4", "Name: roce_exporter", f"Version: {roce_exporter.__version__}")
    place.write_text(
        "\n".join((*head, "Summary: the exporter", "License-Expression: Apache-2.0", *lines, ""))
    )
    yield from distributions(path=[str(folder), *sys.path])


@pytest.mark.parametrize("lock", BILLS)
def test_the_bill_of_materials_lists_the_packages_and_what_needs_what(lock, tmp_path, monkeypatch) -> None:
    """Of the versions that are installed here; `make release` makes it of the wheels that it ships."""
    monkeypatch.syspath_prepend(DEPLOY)
    bill = module_of(DEPLOY / "sbom.py").bill
    packages = list(metadata_of(tmp_path))
    versions = {name: version(name) for name in locked(lock)}
    materials = bill(packages, versions, BILLS[lock])
    assert (materials["bomFormat"], materials["specVersion"]) == ("CycloneDX", "1.5")
    components = {one["name"]: one for one in materials["components"]}
    assert {name: one["version"] for name, one in components.items()} == versions
    for name, one in components.items():
        assert one["purl"] == f"pkg:pypi/{name}@{one['version']}", "by which scanners know it"
        assert one["licenses"]
    root = materials["metadata"]["component"]
    assert (root["name"], root["version"]) == (PROJECT["project"]["name"], roce_exporter.__version__)
    needs = {one["ref"]: one["dependsOn"] for one in materials["dependencies"]}
    assert needs.keys() == {root["bom-ref"], *versions}
    assert {*needs[root["bom-ref"]]} == {canonicalize_name(Requirement(text).name) for text in WANTED[lock]}
    with pytest.raises(LookupError, match=r"no wheel of h11 0\.0"):
        bill(packages, {**versions, "h11": "0.0"}, ())


@pytest.mark.ci
def test_the_exporter_installs_and_runs_from_the_lock_alone(tmp_path) -> None:
    """The commands are those of SECURITY.md, except that the exporter itself is the one under test."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    flags = ("--quiet", "--require-hashes", "--only-binary=:all:", f"--requirement={ROOT}/requirements.lock")
    installed = ran(python, "-m", "pip", "install", *flags)
    if "No matching distribution" in installed.stderr or "Connection" in installed.stderr:
        lacking(f"the package index cannot be reached: {installed.stderr.strip()[-200:]}")
    assert installed.returncode == 0, installed.stderr
    (tmp_path / "exporter").mkdir()
    (tmp_path / "exporter/roce_exporter").symlink_to(roce_exporter.__path__[0])
    code = (
        f"import sys; sys.path[:0] = [{str(tmp_path / 'exporter')!r}];"
        "from roce_exporter.cli import main; sys.exit(main())"
    )
    command = (python, "-I", "-c", code)
    assert "\nroce_ecn_marked_packets_total{" in printed(*command, "once", "--host.simulate=quiet")
    demo = ran(*command, "demo")
    assert (demo.returncode, demo.stdout) == (2, "")
    assert demo.stderr == f"roce-exporter: {RICH_IS_MISSING}\n"
