"""The list of rooms in docs/architecture.md is complete, every import goes down it, and one name is one thing."""

import ast
import re
from collections import defaultdict
from pathlib import Path

from package_modules import MODULES, PACKAGE, ROOT, imports, nodes


def floors() -> list[list[str]]:
    """The rooms of each line, from the top."""
    block = re.search(r"```rooms\n(.*?)```", (ROOT / "docs/architecture.md").read_text(), re.DOTALL)
    return [re.split(r" {2,}", line)[0].split() for line in (block[1] if block else "").splitlines()]


HOUSES = ("checks", "host")
"""Folders whose folders and modules are rooms."""


def rooms() -> dict[str, list[Path]]:
    """The files of each room: a folder, or a module next to them."""
    return {
        str(place.relative_to(PACKAGE).with_suffix("")): (
            sorted(place.rglob("*.py")) if place.is_dir() else [place]
        )
        for house in (PACKAGE, *(PACKAGE / name for name in HOUSES))
        for place in house.iterdir()
        if place.suffix == ".py" or (place / "__init__.py").exists()
        if not place.stem.startswith("__") and place.name not in HOUSES
    }


def imported(place: Path) -> set[str]:
    """The rooms that a module imports from."""
    return {
        "/".join(parts[1 : 3 if parts[1] in HOUSES else 2])
        for module in imports(place)
        if (parts := module.split("."))[0] == "roce_exporter" and parts[1:]
    }


def test_the_list_names_every_room_once() -> None:
    assert sorted(room for line in floors() for room in line) == sorted(rooms())


def test_every_import_goes_down() -> None:
    height = {room: -number for number, line in enumerate(floors()) for room in line}
    climbs = {
        f"{place.relative_to(PACKAGE)} imports {other}"
        for room, places in rooms().items()
        for place in places
        for other in imported(place) & set(height) - {room}
        if height[other] >= height[room]
    }
    assert not climbs
    assert sum(map(len, map(imported, MODULES))) > 500


PLAIN = ("catalog", "cli")
"""Rooms whose role is plain from their name: a module there may be called like one of another room.

`cli/audit.py` is the command of `audit/`.
"""


SYSTEMS = PACKAGE / "switches" / "systems"
"""Its folders have the same files: `requests.py` and `read.py`."""


def doubled(names: list[tuple[str, Path]]) -> dict[str, list[str]]:
    """The names that are given more than once, with their files."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, path in names:
        places[name].append(str(path.relative_to(PACKAGE)))
    return {name: found for name, found in places.items() if len(found) > 1}


def test_no_two_classes_have_one_name() -> None:
    classes = [
        (node.name, path) for path in MODULES for node in nodes(path) if isinstance(node, ast.ClassDef)
    ]
    assert doubled(classes) == {}


def test_no_two_modules_have_one_name() -> None:
    modules = [
        (path.stem, path)
        for path in MODULES
        if path.name != "__init__.py"
        and path.relative_to(PACKAGE).parts[0] not in PLAIN
        and SYSTEMS not in path.parents
    ]
    assert doubled(modules) == {}
