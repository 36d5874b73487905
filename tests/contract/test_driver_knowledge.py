"""Driver knowledge is in table rows: code of the audit never compares a dialect with a driver's name."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from roce_exporter import audit
from roce_exporter.audit import ALL_CHECKS
from roce_exporter.catalog import DIALECTS
from roce_exporter.catalog.drivers import DRIVERS, dialect_of, family_of
from roce_exporter.catalog.row import ANY

if TYPE_CHECKING:
    from roce_exporter.audit.verdict import Check

MODULES = sorted(Path(audit.__file__).parent.glob("*.py"))


def is_dialect(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id == "dialect") or (
        isinstance(node, ast.Attribute) and node.attr == "dialect"
    )


def names_a_driver(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Constant) and part.value in DIALECTS for part in ast.walk(node))


def comparisons(source: str) -> list[int]:
    """The lines that compare a dialect with anything for equality, or compare any value with the name of a driver."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            equality = any(isinstance(operator, (ast.Eq, ast.NotEq)) for operator in node.ops)
            if any(map(names_a_driver, sides)) or (equality and any(map(is_dialect, sides))):
                found.append(node.lineno)
        elif isinstance(node, ast.MatchValue) and names_a_driver(node.value):
            found.append(node.value.lineno)
    return sorted(found)


@pytest.mark.parametrize("module", MODULES, ids=lambda place: place.stem)
def test_no_module_of_the_audit_compares_a_dialect(module: Path) -> None:
    assert comparisons(module.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "settings.dialect == 'mlx5'",
        "if not priorities or settings.dialect != 'mlx5': pass",
        "dialect == ANY",
        "'bnxt_re' == kind",
        "settings.dialect in ('mlx5', 'mlx4')",
        "match kind:\n    case 'irdma':\n        pass",
    ],
)
def test_a_comparison_is_found(source: str) -> None:
    assert comparisons(f"x = 1\n{source}\n")


def test_a_column_of_a_table_is_no_comparison() -> None:
    assert (
        comparisons("Check('trust', only=('mlx5',))\nreturn_ = not self.only or dialect in self.only\n") == []
    )


@pytest.mark.parametrize("check", ALL_CHECKS, ids=lambda check: check.id)
def test_a_check_names_only_drivers_of_the_table(check: Check) -> None:
    assert {*check.only, *check.fix} - {ANY} <= set(DIALECTS)
    assert ANY in check.fix, "a driver without a command of its own gets this one"


def test_every_family_is_one_row() -> None:
    drivers = [driver for family in DRIVERS for driver in family.kernel_drivers]
    assert len(set(DIALECTS)) == len(DIALECTS)
    assert len(set(drivers)) == len(drivers)
    for family in DRIVERS:
        assert family_of(family.dialect) is family
        assert {dialect_of(driver) for driver in family.kernel_drivers} <= {family.dialect}
    assert family_of("").kernel_drivers == ()
