"""The table of values in the chart's README, from values.yaml and its comments: `python tests/deploy/write_chart_readme.py`."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import yaml
from deploy_tools import DEPLOY

if TYPE_CHECKING:
    from collections.abc import Iterator

CHART = DEPLOY / "helm/roce-exporter"
README = CHART / "README.md"
BEGIN = "<!-- values: written from values.yaml by `make generate` -->\n\n"
HEAD = "| value | default | meaning |\n| --- | --- | --- |\n"


def comments(text: str) -> dict[str, str]:
    """The comment above each key of values.yaml, by the key's path."""
    found: dict[str, str] = {}
    above: list[str] = []
    path: list[tuple[int, str]] = []
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip())
        if comment := re.match(r"\s*# (.*)", line):
            above.append(comment[1])
            continue
        if key := re.match(r"\s*([\w./-]+):(?:\s|$)", line):
            path = [*((column, name) for column, name in path if column < indent), (indent, key[1])]
            found[".".join(name for _, name in path)] = " ".join(above)
        above = []
    return found


def leaves(values: dict[str, Any], schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Each value that the schema knows by name, with its default."""
    for name, value in values.items():
        below = schema["properties"][name]
        if "$ref" in below:
            raise ValueError(f"{path}{name}: references are not followed")
        if "properties" in below and value:
            yield from leaves(value, below, f"{path}{name}.")
        else:
            yield path + name, value


def readme() -> str:
    """The README with the table as it must be.

    A comment on a group of values is the meaning of its first value too.
    """
    text = (CHART / "values.yaml").read_text()
    schema = json.loads((CHART / "values.schema.json").read_text())
    found = comments(text)
    rows, shown = [], set()
    for path, default in leaves(yaml.safe_load(text), schema):
        groups = [path.rsplit(".", count)[0] for count in range(path.count("."), 0, -1)]
        above = [found[name] for name in groups if name not in shown]
        shown |= set(groups)
        meaning = " ".join(part for part in (*above, found[path]) if part).replace("|", "\\|")
        rows.append(f"| `{path}` | `{json.dumps(default)}` | {meaning} |\n")
    return README.read_text().split(BEGIN)[0] + BEGIN + HEAD + "".join(rows)


if __name__ == "__main__":
    README.write_text(readme())
    sys.stdout.write(f"{README}\n")
