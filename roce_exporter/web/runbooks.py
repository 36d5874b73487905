"""The runbooks of the alerts, `/runbooks/NAME`: shipped text and nothing else, which every client may read, also without a login."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

PREFIX = "/runbooks/"


@cache
def runbooks() -> dict[str, bytes]:
    """The text of each page by its path, with and without `.md`, and a list of all at `/runbooks/`. Empty where none is shipped."""
    package = resources.files("roce_exporter")
    folder = package.joinpath("alerts", "runbooks")
    if not folder.is_dir():
        # a checkout
        folder = Path(str(package)).parent / "alerts" / "runbooks"
    if not folder.is_dir():
        return {}
    files = {one.name: one.read_bytes() for one in folder.iterdir() if one.name.endswith(".md")}
    pages = {
        f"{PREFIX}{path}": text for name, text in files.items() for path in (name, name.removesuffix(".md"))
    }
    listed = "".join(f"{PREFIX}{name.removesuffix('.md')}\n" for name in sorted(files))
    return pages | {PREFIX: listed.encode()}
