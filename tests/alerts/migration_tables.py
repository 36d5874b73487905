"""The tables of docs/migration.md. `python tests/alerts/migration_tables.py` writes them."""

import re
import sys
from pathlib import Path

# what pytest does
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "alerts"))

from collections.abc import Iterable, Iterator

from migration_uses import ALL, BOARDS, NOTHING, PARTLY, SOURCES, Source, alerts, given, level, panels

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import MetricSet
from roce_exporter.migrate.foreign import EXPORTERS, foreign_metrics

DOCUMENT = Path(__file__).parents[2] / "docs/migration.md"
BLOCK = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
"""Where a table is in the document."""
WORDS = {NOTHING: "", PARTLY: "partly", ALL: "yes"}
SETS = {row.name: row.metric_set for row in CATALOG}


def document() -> str:
    """The document with current tables."""
    tables = {"alerts": _alerts(), "boards": _boards(), "sets": _sets()}
    return BLOCK.sub(lambda found: f"{found[1]}{tables[found[2]]}\n{found[3]}", DOCUMENT.read_text())


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _alerts() -> str:
    levels = {name: [level(source, expr) for source in SOURCES] for name, expr in alerts()}
    shown = {name: found for name, found in sorted(levels.items()) if any(found)}
    table = _table(
        ["alert", *(source.title for source in SOURCES)],
        [
            ["*metrics of ours*", *(str(len(given(source))) for source in SOURCES)],
            *([name, *(WORDS[one] for one in found)] for name, found in shown.items()),
        ],
    )
    return f"{table}\n\nThe other {len(levels) - len(shown)} alerts have no data from these exporters and never fire on such hosts."


def _boards() -> str:
    return _table(
        ["dashboard", *(source.title for source in SOURCES)],
        ([place.stem, *(_panels(source, place) for source in SOURCES)] for place in BOARDS),
    )


def _panels(source: Source, place: Path) -> str:
    """Panels with all their queries, panels with some, and all panels."""
    found = [[level(source, query) for query in queries] for queries in panels(place)]
    whole = sum(min(one) == ALL for one in found)
    some = sum(max(one) > NOTHING for one in found) - whole
    return f"{whole} + {some} of {len(found)}"


def _sets() -> str:
    return _table(["exporter", *MetricSet], (_by_set(exporter) for exporter in EXPORTERS))


def _by_set(exporter: str) -> Iterator[str]:
    yield exporter
    named = {
        one.name: one.ours
        for one in foreign_metrics(exporter)
        if (not one.dialects or "mlx5" in one.dialects) and "amazonefa" not in one.name
    }
    for largest in MetricSet:
        yield str(sum(largest.includes(SETS[ours]) for ours in named.values()))


if __name__ == "__main__":
    DOCUMENT.write_text(document())
