"""The check for known vulnerabilities, with the real pip-audit and databases of our own in the form of OSV's archive."""

import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from deploy_tools import DEPLOY, ROOT, module_of, ran, tool_environment
from packaging.version import Version

SCRIPT = DEPLOY / "audit_dependencies.py"
H11 = "0.16.0"
"""The version in requirements.lock."""
VERSIONS = ("0.1", "1.0rc1", "1.0", "1.9", "1.10", "2.0")


AUDIT = module_of(SCRIPT)


def record(name: str, *events: dict[str, str], **more: Any) -> dict[str, Any]:
    affected = {
        "package": {"name": name, "ecosystem": "PyPI"},
        "ranges": [{"type": "ECOSYSTEM", "events": events}],
    }
    dates = {"modified": "2026-11-20T10:00:00Z", "published": "2026-11-01T10:00:00Z"}
    return {
        "schema_version": "1.6.0",
        "id": "TEST-2026-1",
        **dates,
        "affected": [affected],
        "summary": "x",
        **more,
    }


def database(folder: Path, *records: dict[str, Any]) -> Path:
    place = folder / "all.zip"
    with zipfile.ZipFile(place, "w") as archive:
        for number, one in enumerate(records):
            archive.writestr(f"TEST-2026-{number}.json", json.dumps(one))
    return place


def audited(place: Path) -> subprocess.CompletedProcess[str]:
    python = tool_environment("audit") / "python"
    return ran(python, SCRIPT, place, ROOT / "requirements.lock")


@pytest.mark.ci
def test_a_hit_fails_and_the_date_of_the_database_is_printed(tmp_path) -> None:
    assert f"h11=={H11} " in (ROOT / "requirements.lock").read_text()
    hit = record("h11", {"introduced": "0"}, {"fixed": "0.16.1"})
    older = record("pyyaml", {"introduced": "0"}, {"fixed": "5.4"}, modified="2025-01-01T00:00:00Z")
    done = audited(database(tmp_path, hit, older))
    assert done.returncode == 1, done.stderr
    assert "2 records, the newest of 2026-11-20T10:00:00Z\n" in done.stdout
    assert [line.split()[:4] for line in done.stdout.splitlines() if "TEST-" in line] == [
        ["h11", H11, "TEST-2026-1", "0.16.1"]
    ]


@pytest.mark.ci
def test_without_a_hit_it_passes(tmp_path) -> None:
    withdrawn = record("h11", {"introduced": "0"}, withdrawn="2026-11-02T10:00:00Z")
    done = audited(database(tmp_path, withdrawn, record("pyyaml", {"introduced": "0"}, {"fixed": "5.4"})))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("content", ["none", "no archive", "an empty archive"])
def test_without_a_database_it_does_not_pass(tmp_path, content, capsys) -> None:
    place = database(tmp_path) if content == "an empty archive" else tmp_path / "all.zip"
    if content == "no archive":
        place.write_text("<html>")
    assert AUDIT.main(str(place), []) == 2
    assert capsys.readouterr().err.startswith(f"{place}: ")


@pytest.mark.parametrize(
    ("events", "affected"),
    [
        ([{"introduced": "0"}], list(VERSIONS)),
        ([{"introduced": "0"}, {"fixed": "1.0"}], ["0.1", "1.0rc1"]),
        ([{"introduced": "1.0"}, {"last_affected": "1.9"}], ["1.0", "1.9"]),
        ([{"introduced": "0"}, {"fixed": "1.0"}, {"introduced": "1.10"}], ["0.1", "1.0rc1", "1.10", "2.0"]),
        ([{"fixed": "1.0"}, {"introduced": "0.5"}], ["1.0rc1"]),
    ],
)
def test_which_versions_a_range_affects(events, affected) -> None:
    """The versions are compared as PEP 440 orders them: 1.9 is before 1.10, a candidate before its release."""
    found = [one for one in VERSIONS if AUDIT.in_range(events, Version(one))]
    assert found == affected


def test_listed_versions_count_next_to_ranges() -> None:
    listed = record("h11")
    listed["affected"][0]["versions"] = ["0.16", "not a version"]
    assert AUDIT.affects(listed, "h11", Version(H11))
    assert not AUDIT.affects(listed, "h12", Version(H11))


def test_the_index_is_believed_about_a_version_only_where_the_page_is_of_it(tmp_path, monkeypatch) -> None:
    """A mirror may have the page of the newest version alone."""
    one = {"id": "PYSEC-1", "aliases": ["CVE-1"], "fixed_in": ["2.0"], "details": "x", "withdrawn": None}
    newest = {"info": {"version": "1.1"}, "vulnerabilities": [one]}
    pages = {"own/1.0": {"info": {"version": "1.0"}, "vulnerabilities": []}, "newest": newest, "old": newest}
    monkeypatch.setattr(AUDIT, "page_of", lambda place: pages.get(place, {}))
    lock = tmp_path / "it.lock"
    lock.write_text(
        "# of: x==3\nNewest==1.1 \\\n    --hash=sha256:0\nold==0.9 ; python_version < '3.12'\nown==1.0\n"
    )
    pages["Newest"] = newest
    index = AUDIT.Index([lock])
    assert index.unknown == ["old 0.9"]
    (hit,) = index.found({"package": {"name": "newest"}, "version": "1.1"})
    assert (hit["id"], hit["affected"][0]["ranges"][0]["events"]) == ("PYSEC-1", [{"fixed": "2.0"}])
    assert index.found({"package": {"name": "own"}, "version": "1.0"}) == []


def test_an_index_that_does_not_answer_does_not_pass(monkeypatch, capsys) -> None:
    def away(place: str) -> None:
        raise OSError(f"no answer of {place}")

    monkeypatch.setattr(AUDIT, "page_of", away)
    assert AUDIT.main("index", [ROOT / "requirements.lock"]) == 2
    assert capsys.readouterr().err == "index: no answer of aiofiles/25.1.0\n"
