"""The modules by name. Each is imported when a target uses it, because two of them need packages of an extra."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from roce_exporter.catalog.switch_systems import SYSTEMS
from roce_exporter.errors import UserError

if TYPE_CHECKING:
    from roce_exporter.switches.readings import Module


class ModuleMissingError(UserError):
    """A module cannot be used because a package is not installed: one line with the remedy."""


def load_module(name: str) -> Module:
    """The module of this name, which is a key of `SYSTEMS`.

    Raises:
        ModuleMissingError: a package that it needs is not installed.
    """
    system = SYSTEMS[name]
    try:
        found = importlib.import_module(f"roce_exporter.switches.systems.{system.file}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("roce_exporter"):
            raise
        raise ModuleMissingError(
            f"module {name} needs the package {error.name}; install the extra {system.extra}, in a clone: pip install '.[{system.extra}]'"
        ) from None
    return cast("Module", found.MODULE)


@cache
def requests_of(section: str) -> tuple[tuple[str, ...], ...]:
    """The rows of a section of `requests.txt`; `table_of` for rows of two fields."""
    text = Path(__file__).with_name("requests.txt").read_text(encoding="utf-8")
    lines = text.partition(f"[{section}]\n")[2].partition("\n\n")[0].splitlines()
    return tuple(tuple(re.split(" {2,}", line)) for line in lines)


def table_of(section: str) -> dict[str, str]:
    """The second field of the rows of a section, by the first one."""
    return {key: value for key, value in requests_of(section)}  # noqa: C416 - pairs
