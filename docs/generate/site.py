"""The documents as a site with search: `make site`, or `python docs/generate/site.py FOLDER` where mkdocs-material is installed.

mkdocs-material builds it from the Markdown files of the repository; a link that leads nowhere fails. Pages have stable addresses: `PAGE/` for
`docs/PAGE.md`, `runbooks/NAME/` for the runbook of an alert, which `runbook_base_url` of `alerts/thresholds.yml` may name. What is no page is linked in the repository, whose address is
`project.urls.Homepage` of `pyproject.toml`.
"""
# ruff: noqa: INP001 - a script next to the documents, not a package

import logging
import re
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from mkdocs.commands.build import build
from mkdocs.config import load_config

ROOT = Path(__file__).parents[2]
PAGES = ("docs/*.md", "alerts/runbooks/*.md", "*.md", "*/README.md", "deploy/*/*.md", "tests/*/README.md")
PICTURES = "dashboards/pictures/*.png"
SHORT = {"docs/": "", "alerts/runbooks/": "runbooks/"}
"""Folders of the repository that have a shorter address."""
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]*)")
FIRST = (
    "tutorial",
    "glossary",
    "bare-metal",
    "kubernetes",
    "slurm",
    "operating",
    "troubleshooting",
    "alerts",
)
"""The pages of `docs` that come first, in the order in which an operator meets them."""


def sites_of(root: Path) -> dict[str, str]:
    """The path in the site by the path in the repository, of each page and picture."""
    files = (
        path.relative_to(root).as_posix() for pattern in (*PAGES, PICTURES) for path in root.glob(pattern)
    )
    return {name: site_of(name) for name in files}


def site_of(name: str) -> str:
    """The path in the site of a file of the repository."""
    if name == "README.md":
        return "index.md"
    return next(
        (short + name.removeprefix(long) for long, short in SHORT.items() if name.startswith(long)), name
    )


def with_links(text: str, name: str, sites: dict[str, str], repository: str) -> str:
    """The text of the page `name` with its links as the site needs them: to pages by path, to other files of the repository by address."""

    def moved(found: re.Match[str]) -> str:
        target = normpath(PurePosixPath(name).parent / found[0])
        page = sites.get(target) or sites.get(f"{target}/README.md")
        if page:
            return relpath(page, PurePosixPath(sites[name]).parent)
        if not (ROOT / target).exists():
            raise SystemExit(f"{name}: there is no {target}")
        return f"{repository}/blob/main/{target}"

    return LINK.sub(moved, text)


def navigation(sites: dict[str, str]) -> list[dict[str, object]]:
    """The pages in groups; mkdocs takes the titles from the pages."""
    documents = [f"{name}.md" for name in FIRST]
    documents += sorted(
        page for name, page in sites.items() if name.startswith("docs/") and page not in documents
    )
    runbooks = sorted(page for page in sites.values() if page.startswith("runbooks/"))
    others = sorted(
        page
        for page in sites.values()
        if page.endswith(".md") and page not in {*documents, *runbooks, "index.md"}
    )
    return [{"roce_exporter": "index.md"}, {"Documents": documents}, {"Runbooks": runbooks}, {"More": others}]


def main(folder: str) -> None:
    """Build the site.

    Raises:
        SystemExit, mkdocs.exceptions.Abort: a link leads nowhere; it is printed.
    """
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    sites = sites_of(ROOT)
    repository = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Homepage"]
    with tempfile.TemporaryDirectory() as work:
        for name, place in sites.items():
            (Path(work, place)).parent.mkdir(parents=True, exist_ok=True)
            if name.endswith(".md"):
                Path(work, place).write_text(with_links((ROOT / name).read_text(), name, sites, repository))
            else:
                shutil.copy(ROOT / name, Path(work, place))
        config = load_config(
            str(Path(__file__).with_name("mkdocs.yml")),
            docs_dir=work,
            site_dir=str(Path(folder).absolute()),
            nav=navigation(sites),
            strict=True,
        )
        build(config)


if __name__ == "__main__":
    main(*sys.argv[1:])
