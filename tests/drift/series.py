"""The table of names in this folder, read and written."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).parent / "names.tsv"
HEAD = "driver\tsource\tkernels\tnames"
WIDTH = 200
"""Characters of the names of one line."""
PORT = "*"
"""After a kernel: there the name is a statistic of the physical port."""
CORE = "ib_core"
"""The driver of the names that the RDMA core gives to the PMA."""


class Named(NamedTuple):
    """A name of a driver."""

    driver: str
    source: str
    name: str

    @property
    def example(self) -> str:
        """The name as a host shows it: a number for every placeholder."""
        return re.sub(r"\{\w+\}", "3", self.name)


Kernels = tuple[str, ...]
"""The kernels that have a name, oldest first, each with or without `PORT`."""


@cache
def table() -> Mapping[Named, Kernels]:
    """Every known name. No kernel has those of out-of-tree drivers, of firmware, and of kernels between the series."""
    head, *lines = TABLE.read_text().splitlines()
    assert head == HEAD
    found = {
        Named(driver, source, name): tuple(kernels.split())
        for driver, source, kernels, names in (line.split("\t") for line in lines)
        for name in names.split(", ")
    }
    return dict(sorted(found.items()))


def written(names: Mapping[Named, Kernels]) -> str:
    """The text of the table: the names that the same kernels have are on as few lines as they need."""
    of_lines: dict[tuple[str, str, str], list[str]] = {}
    for (driver, source, name), kernels in sorted(names.items()):
        of_lines.setdefault((driver, source, " ".join(kernels)), []).append(name)
    lines = (
        "\t".join((*place, part)) for place, listed in sorted(of_lines.items()) for part in _wrapped(listed)
    )
    return "".join(f"{line}\n" for line in (HEAD, *lines))


def _wrapped(names: list[str]) -> Iterator[str]:
    """The names with commas between them, in parts of at most `WIDTH` characters, or of one name."""
    part = ""
    for name in names:
        if part and len(part) + len(name) >= WIDTH:
            yield part
            part = ""
        part += f", {name}" if part else name
    yield part


def with_kernel(series: str, names: Iterable[Named], of_port: Iterable[Named]) -> dict[Named, Kernels]:
    """The table with the names of one kernel, in place of those that it had for it."""
    made = {name: tuple(one for one in having if _bare(one) != series) for name, having in table().items()}
    port = {*of_port}
    for name in names:
        having = (*made.get(name, ()), series + PORT * (name in port))
        made[name] = tuple(sorted(having, key=_order))
    return made


def _bare(kernel: str) -> str:
    return kernel.removesuffix(PORT)


def _order(kernel: str) -> list[int]:
    return [int(part) for part in _bare(kernel).split(".")]


SERIES = sorted({_bare(one) for having in table().values() for one in having}, key=_order)


def names_of(series: str) -> list[Named]:
    """Every name of one kernel."""
    return [name for name, having in table().items() if series in map(_bare, having)]


def port_names() -> set[Named]:
    """The statistics of the physical port, of any kernel."""
    return {name for name, having in table().items() if any(one.endswith(PORT) for one in having)}


def extra_names() -> list[Named]:
    """The names that no kernel has."""
    return [name for name, having in table().items() if not having]
