"""How the configuration dashboard shows settings: the number of ports with each value, with names and units instead of codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from boards.colours import DCBX, ON_OFF, ROCE_VERSION, SCHEDULING, TRUST
from boards.measures import meanings, row
from boards.model import Json, Panel, cell
from boards.panels import by_name, named
from boards.rules import PLACES, SETTING, SETTINGS
from boards.scopes import FLEET, to_host, to_port
from boards.tables import table
from roce_exporter.catalog.row import ANY
from roce_exporter.checks.settings import ALL_CHECKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FIELDS = ("cluster", "job", "instance", "device", "port", "netdev")
LINKS = (by_name("instance", ("links", [to_host()])), by_name("device", ("links", [to_port()])))


Spread = tuple[Any, ...]
"""Title, metric, how to read it, its unit or the texts of its codes, width, text for no data, and the scenario with data if it is not the usual one."""


def spreads(rows: Iterable[Spread]) -> Iterator[Panel]:
    """The number of ports with each value of a setting, a panel each: normally one line, or one per kind of NIC."""
    for title, metric, reading, shown, width, empty, *proof in rows:
        unit, codes = (shown or "none", {}) if isinstance(shown, str) else ("none", shown)
        by = tuple(name for name in PLACES if name in row(metric).labels)
        columns = ("cluster", *by, "value", "Value")
        counted = f'sum by ({", ".join(columns[:-1])}) ({SETTING}{{setting="{metric}",{FLEET}}})'
        wide_text = max((len(text) for text in codes.values()), default=0) * 7 + 20
        texts = [named({value: (text, "") for value, text in codes.items()})] if codes else []
        yield table(
            title,
            f"Number of ports with each value; rare values are the exceptions. {reading}\n\n{meanings(metric)}",
            columns,
            cell(counted),
            names={"Value": "ports"},
            sort="Value",
            rarest=True,
            numeric=("value",),
            overrides=(
                by_name("value", ("unit", unit), ("mappings", texts), ("custom.width", min(max(120, wide_text), 180))),
            ),
            width=width,
            empty=empty,
            **({"proof": proof[0]} if proof else {}),
        )  # fmt: skip


CODES: dict[str, Mapping[int, str]] = {
    "roce_config_trust_dscp": TRUST,
    "roce_config_dcbx_mode": DCBX,
    "roce_config_cm_roce_version": ROCE_VERSION,
    **{name: SCHEDULING for name in SETTINGS if name.endswith("_algorithm")},
    **{name: ON_OFF for name in SETTINGS if row(name).unit == "bool" and name != "roce_config_trust_dscp"},
}
UNITS = {"_seconds": " s", "_bytes": " B", "_bytes_per_second": " B/s"}
"""Units of settings whose values are not codes, by the end of the metric's name."""


def value_texts() -> list[Json]:
    """Texts for values written as `setting=value`: names of codes, and units."""
    codes = {f"{name}={code}": (text, "") for name, texts in CODES.items() for code, text in texts.items()}
    return [named(codes), *with_units(UNITS)]


def with_units(units: Mapping[str, str]) -> list[Json]:
    """Texts for values written as `name=value`, with a unit by the end of the name."""
    return [*(_pattern(end, unit) for end, unit in units.items()), _pattern("", "")]


def _pattern(end: str, unit: str) -> Json:
    return {
        "type": "regex",
        "options": {"pattern": f"^.*{end}=(.*)$", "result": {"text": f"$1{unit}", "index": 0}},
    }


def check_texts() -> dict[str, Json]:
    """The audit's texts by check: its title, why it matters, and the generic command that fixes it."""
    return {
        "check": named({check.id: (check.title, "") for check in ALL_CHECKS}),
        "why": named({check.id: (check.why, "") for check in ALL_CHECKS}),
        "fix": named({check.id: (command(check.fix[ANY]), "") for check in ALL_CHECKS}),
    }


class _Blanks(dict[str, str]):
    """Keeps the placeholder of a value visible: the audit on the host fills it in."""

    def __missing__(self, name: str) -> str:
        return name.upper()


def command(text: str) -> str:
    """A command with the names of what the host fills in."""
    return text.format_map(_Blanks())
