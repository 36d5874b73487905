"""`make site`: each document and runbook is a page at a stable address, and a link that leads nowhere fails."""

import json
import re
from pathlib import Path

import pytest
from deploy_tools import ROOT, ran, tool_environment

pytestmark = pytest.mark.nightly


def build(root: Path, folder: Path) -> tuple[int, str]:
    """The exit code, and what is printed."""
    done = ran(tool_environment("site") / "python", root / "docs/generate/site.py", folder)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    assert build(ROOT, folder) == (0, "")
    return folder


def test_each_document_and_runbook_has_its_address(site) -> None:
    names = [path.stem for path in (ROOT / "docs").glob("*.md")]
    names += [f"runbooks/{path.stem}" for path in (ROOT / "alerts/runbooks").glob("*.md")]
    assert "runbooks/RocePfcStorm" in names
    assert not [name for name in names if not (site / name / "index.html").is_file()]


def test_the_search_finds_a_metric(site) -> None:
    pages = json.loads((site / "search/search_index.json").read_text())["docs"]
    assert [
        page for page in pages if "roce_cnp_sent" in page["text"] and page["location"].startswith("metrics/")
    ]


def test_nothing_is_loaded_from_elsewhere(site) -> None:
    for page in site.rglob("*.html"):
        assert not re.findall(
            r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="(?:https?:)?//', page.read_text()
        )


@pytest.mark.parametrize("link", ["no-such-page.md", "operating.md#no-such-heading"])
def test_a_link_that_leads_nowhere_fails(tmp_path, link) -> None:
    for name in ("docs/generate/site.py", "docs/generate/mkdocs.yml", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "README.md").write_text("# Home\n")
    (tmp_path / "docs/operating.md").write_text(f"# Operating\n\n[here]({link})\n")
    code, said = build(tmp_path, tmp_path / "site")
    assert code != 0
    assert link.removeprefix("operating.md#") in said
