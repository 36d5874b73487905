"""Every locked package has a licence that fits its use, docs/licences.md lists it, and what is shipped has the text of its licence."""

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from deploy_tools import DEPLOY, ROOT, module_of

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
OURS_ALONE = {
    *("requirements-build.lock", "requirements-test.lock"),
    *("deploy/manual/requirements.lock", "docs/generate/requirements.lock"),
}
"""The lock files of packages that are not shipped."""
TEXT = re.compile(r"licen[cs]e|copying", re.IGNORECASE)


LICENCES = module_of(DEPLOY / "licences.py")
SHIPPED = LICENCES.locked(*(name for name in LICENCES.LOCKS if name not in OURS_ALONE))
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
    assert {name: version for name, version, _, _ in ROWS} == LICENCES.locked(*LICENCES.LOCKS)
    assert {name for name, *_, mark in ROWS if mark} == LICENCES.locked("requirements.lock").keys()


def test_every_lock_file_is_read() -> None:
    assert set(LICENCES.LOCKS) > OURS_ALONE
    assert "requirements.lock" in LICENCES.LOCKS


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


def test_the_table_is_what_the_packages_say_and_their_wheels_have_the_texts() -> None:
    """Of those that are installed here, in the locked version or another: only a build needs the others.

    `pip install --target` keeps the texts, for the Debian package and the image: test_deb.py.
    """
    found = {}
    for name in LISTED:
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue
    assert found.keys() >= LICENCES.locked("requirements-test.lock").keys()
    for name, package in found.items():
        assert LICENCES.licence(package) == LISTED[name]
        files = [
            file for file in package.files or () if TEXT.search(file.name) and ".dist-info" in file.parts[0]
        ]
        if name in SHIPPED:
            assert max((Path(str(file.locate())).stat().st_size for file in files), default=0) > 500, name
