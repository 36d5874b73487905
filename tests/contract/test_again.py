"""tests/again.py: what becomes of a run in CI whose tests have failed."""

import subprocess
import sys
from pathlib import Path

import again
import pytest

TESTS = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("name", ["first", "listed"])
def test_once(name):
    marker = Path(name)
    before = marker.exists()
    marker.touch()
    assert before

def test_always():
    raise AssertionError

def test_never():
    pass

@pytest.mark.parametrize("n", range(11))
def test_many(n):
    raise AssertionError
"""
DOCUMENT = "## Known flaky tests\n\n* `test_it.py::test_once[listed]`: why\n\n## Next\n\n* `test_it.py::test_once[first]`\n"


@pytest.mark.parametrize(
    ("selected", "status", "printed"),
    [
        ("first", 0, ["FLAKY test_it.py::test_once[first]", "1 failed, 1 of them flaky"]),
        (
            "listed",
            1,
            [
                "FLAKY test_it.py::test_once[listed]: a known one, see docs/testing.md",
                "1 failed, 1 of them flaky",
            ],
        ),
        ("always or first or never", 1, ["FLAKY test_it.py::test_once[first]", "2 failed, 1 of them flaky"]),
        ("many", 1, ["11 tests have failed, more than 10: none is tried again"]),
    ],
)
def test_a_failed_test_is_tried_once_more(tmp_path, monkeypatch, selected, status, printed) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # their imports take most of the time
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/testing.md").write_text(DOCUMENT)
    run = [Path(sys.executable).with_name("pytest"), "-q", "-o", "cache_dir=cache", "-k", selected]
    assert subprocess.run(run, cwd=tmp_path, capture_output=True, check=False).returncode == 1
    tried = subprocess.run(
        [sys.executable, again.__file__, "cache"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    lines = tried.stdout.splitlines()
    assert lines[-len(printed) :] == printed
    assert tried.returncode == status


def test_the_list_of_known_flaky_tests_names_existing_files() -> None:
    root = Path(__file__).parents[2]
    names = again.known_flaky((root / again.KNOWN).read_text())
    assert not [name for name in names if not (root / name.partition("::")[0]).is_file()]
