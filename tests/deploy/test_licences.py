"""Every locked package has a licence that fits its use, docs/licences.md lists it, and what is shipped has the text of its licence."""

from __future__ import annotations

import importlib.util
import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from deploy_tools import DEPLOY, ROOT

if TYPE_CHECKING:
    from types import ModuleType

SHIPPABLE = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "MIT",
    "MIT-0",
    "PSF-2.0",
    "Zlib",
}
"""Licences under which a package may be distributed with one under Apache-2.0, without a condition on the exporter itself."""
TOOLS = SHIPPABLE | {"MPL-2.0"}
"""In addition, for packages that build or test the exporter and are in none of its packages."""
TEST_ORACLE = "scapy"
"""GPL-2.0-only; an oracle in tests and one benchmark."""
OURS_ALONE = {"requirements-build.lock", "requirements-test.lock"}
"""The lock files of packages that are not shipped."""
TEXT = re.compile(r"licen[cs]e|copying", re.IGNORECASE)


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("licences", DEPLOY / "licences.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LICENCES = script()
LOCKS = sorted(place.name for place in ROOT.glob("requirements*.lock"))
SHIPPED = LICENCES.locked(*(name for name in LOCKS if name not in OURS_ALONE))
ROWS = re.findall(
    r"^\| ([a-z0-9.-]+) \| (\d\S*) \| (.+) \| (daemon)? ?\|$", LICENCES.TABLE.read_text(), re.MULTILINE
)
LISTED = {name: licence for name, _, licence, _ in ROWS}


def fits(expression: str, allowed: set[str]) -> bool:
    """Whether an SPDX expression can be satisfied with these licences alone."""
    assert "(" not in expression, "nested expressions are not read here"
    return any(set(one.split(" AND ")) <= allowed for one in expression.split(" OR "))


def test_the_table_lists_exactly_the_locked_packages() -> None:
    """Rewrite it with deploy/lock.sh."""
    assert {name: version for name, version, _, _ in ROWS} == LICENCES.locked(*LOCKS)
    assert {name for name, *_, mark in ROWS if mark} == LICENCES.locked("requirements.lock").keys()


def test_what_is_shipped_is_under_a_licence_that_permits_it() -> None:
    assert SHIPPED
    assert not {name: LISTED[name] for name in SHIPPED if not fits(LISTED[name], SHIPPABLE)}


def test_what_builds_and_tests_is_under_a_known_licence() -> None:
    assert [name for name in LISTED if not fits(LISTED[name], TOOLS)] == [TEST_ORACLE]
    assert TEST_ORACLE not in SHIPPED
    shipped = [*ROOT.glob("roce_exporter/**/*.py"), *ROOT.glob("deploy/**/*.py")]
    assert not [
        place
        for place in shipped
        if re.search(rf"^\s*(from|import) {TEST_ORACLE}\b", place.read_text(), re.MULTILINE)
    ]


@pytest.mark.parametrize("name", sorted(LISTED))
def test_the_table_is_what_the_packages_say(name: str) -> None:
    """Of those that are installed here, in the locked version or another."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed: only a build needs it")
    assert LICENCES.licence(found) == LISTED[name]


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_the_text_of_its_licence_is_in_the_wheel(name: str) -> None:
    """`pip install --target` keeps it, for the Debian package and the image: test_deb.py."""
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed here")
    texts = [file for file in files if TEXT.search(file.name) and ".dist-info" in file.parts[0]]
    assert texts
    assert max(Path(str(file.locate())).stat().st_size for file in texts) > 500


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", True),
        ("GPL-2.0-or-later OR Apache-2.0", True),
        ("Apache-2.0 AND BSD-2-Clause", True),
        ("Apache-2.0 AND GPL-2.0-only", False),
        ("MPL-2.0", False),
    ],
)
def test_which_expressions_fit(expression: str, expected: bool) -> None:
    assert fits(expression, SHIPPABLE) == expected


def test_a_package_that_says_nothing_is_an_error() -> None:
    silent = SimpleNamespace(metadata=Metadata(Name="silent"))
    with pytest.raises(LookupError, match="silent: read the licence"):
        LICENCES.licence(silent)


class Metadata(dict[str, str]):
    """Metadata of a package without classifiers."""

    def get_all(self, name: str, otherwise: list[str]) -> list[str]:
        return otherwise
