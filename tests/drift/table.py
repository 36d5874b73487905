"""How many names each driver has on each kernel, how many have a metric and how many are left out, for the documents.

    python tests/drift/table.py

writes the table between the marks in tests/drift/README.md. A name with a placeholder counts once.
"""

import re
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from series import CORE, SERIES, Named, names_of

from roce_exporter.catalog import INDEX

ROOT = Path(__file__).parents[2]
BEGIN = "<!-- names per driver and kernel: python tests/drift/table.py -->"
END = "<!-- end of names per driver and kernel -->"

MODULES = {
    "mlx5": "mlx5_ib, mlx5_core",
    "mlx4": "mlx4_ib, mlx4_en",
    "bnxt_re": "bnxt_re, bnxt_en",
    "bng_re": "bng_re, bng_en",
    "irdma": "irdma, ice, i40e, idpf",
    "ionic": "ionic_rdma, ionic",
    "hns": "hns_roce, hns3",
    "qedr": "qedr, qede",
    "mana": "mana_ib, mana",
    "efa": "efa, ena",
    "erdma": "erdma",
    "rxe": "rxe",
    CORE: "RDMA core (PMA)",
}
"""The kernel's modules of each dialect, in the order of the tables."""


class Share(NamedTuple):
    """The number of names, those with a metric, and those left out with a reason."""

    names: int
    mapped: int
    left_out: int

    def __str__(self) -> str:
        return f"{self.names}: {self.mapped} + {self.left_out}" if self.names else "-"


def share(named: list[Named]) -> Share:
    """The share of these names."""
    fates = Counter(fate(one) for one in named)
    return Share(len(named), fates["mapped"], fates["left out"])


def fate(named: Named) -> str:
    """`mapped`, `left out` or `open`."""
    dialect = "mlx5" if named.driver == CORE else named.driver
    if INDEX.claimed(dialect, named.source, named.example):
        return "mapped"
    return "left out" if INDEX.left_out(dialect, named.source, named.example) else "open"


def by_source() -> str:
    """One line per driver and interface."""
    lists = {series: names_of(series) for series in SERIES}
    kinds = sorted({(one.driver, one.source) for names in lists.values() for one in names})
    rows = [
        (
            MODULES[driver],
            f"`{source}`",
            *(share([one for one in lists[series] if one[:2] == (driver, source)]) for series in SERIES),
        )
        for driver, source in sorted(kinds, key=lambda kind: ([*MODULES].index(kind[0]), kind[1]))
    ]
    return _table(("driver", "interface", *(f"Linux {series}" for series in SERIES)), rows) + _open(lists)


def _table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def _open(lists: dict[str, list[Named]]) -> str:
    found = sorted({one.name for names in lists.values() for one in names if fate(one) == "open"})
    return f"\nWithout a row or a reason yet: {', '.join(f'`{name}`' for name in found)}.\n" if found else ""


DOCUMENTS = {"tests/drift/README.md": by_source}
"""The document with the table."""


def filled(document: str) -> str:
    """The document with the current table."""
    text = (ROOT / document).read_text()
    pattern = re.compile(f"{re.escape(BEGIN)}\n.*?{re.escape(END)}", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise ValueError(
            f"{document}: no place for the table; it needs one line {BEGIN!r} and one line {END!r}"
        )
    return pattern.sub(lambda _: f"{BEGIN}\n\n{DOCUMENTS[document]()}\n{END}", text)


def main() -> int:
    """Write the tables into the documents."""
    for document in DOCUMENTS:
        (ROOT / document).write_text(filled(document))
    return 0


if __name__ == "__main__":
    sys.exit(main())
