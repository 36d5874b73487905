"""Driver knowledge is in table rows: code of the audit never compares a dialect with a driver's name."""

import ast
from pathlib import Path

import pytest
from package_modules import nodes

from roce_exporter.catalog import DIALECTS
from roce_exporter.catalog.drivers import DRIVERS, dialect_of, family_of
from roce_exporter.catalog.row import ANY
from roce_exporter.checks import settings
from roce_exporter.checks.settings import ALL_CHECKS


def is_dialect(node: ast.expr) -> bool:
    return getattr(node, "id", getattr(node, "attr", "")) == "dialect"


def names_a_driver(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Constant) and part.value in DIALECTS for part in ast.walk(node))


def comparisons(module: Path) -> list[int]:
    """The lines that compare a dialect with anything for equality, or compare any value with the name of a driver."""
    found = []
    for node in nodes(module):
        if isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            equality = any(isinstance(operator, ast.Eq | ast.NotEq) for operator in node.ops)
            if any(map(names_a_driver, sides)) or (equality and any(map(is_dialect, sides))):
                found.append(node.lineno)
        elif isinstance(node, ast.MatchValue) and names_a_driver(node.value):
            found.append(node.value.lineno)
    return found


def test_no_module_of_the_audit_compares_a_dialect() -> None:
    modules = sorted(Path(settings.__file__).parent.glob("*.py"))
    assert len(modules) > 5
    assert {module.name: lines for module in modules if (lines := comparisons(module))} == {}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("settings.dialect == 'mlx5'", [1]),
        ("if not priorities or settings.dialect != 'mlx5': pass", [1]),
        ("dialect == ANY", [1]),
        ("'bnxt_re' == kind", [1]),
        ("settings.dialect in ('mlx5', 'mlx4')", [1]),
        ("match kind:\n    case 'irdma':\n        pass", [2]),
        ("Check('trust', only=('mlx5',))\nreturn_ = not self.only or dialect in self.only", []),
    ],
)
def test_a_comparison_is_found(source, lines, tmp_path) -> None:
    (tmp_path / "module.py").write_text(source)
    assert comparisons(tmp_path / "module.py") == lines


def test_a_check_names_only_drivers_of_the_table() -> None:
    assert len(ALL_CHECKS) > 30
    assert {check.id for check in ALL_CHECKS if {*check.only, *check.fix} - {ANY, *DIALECTS}} == set()
    assert {check.id for check in ALL_CHECKS if ANY not in check.fix} == set(), (
        "for drivers without their own"
    )


def test_every_family_is_one_row() -> None:
    drivers = [driver for family in DRIVERS for driver in family.kernel_drivers]
    assert len(set(DIALECTS)) == len(DIALECTS)
    assert len(set(drivers)) == len(drivers)
    for family in DRIVERS:
        assert family_of(family.dialect) is family
        assert {dialect_of(driver) for driver in family.kernel_drivers} <= {family.dialect}
    assert family_of("").kernel_drivers == ()
