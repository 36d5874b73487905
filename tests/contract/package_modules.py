"""The package's modules as syntax trees; each is parsed once per process."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "roce_exporter"
MODULES = sorted(PACKAGE.rglob("*.py"))


@cache
def nodes(module: Path) -> tuple[ast.AST, ...]:
    """Every node of a module."""
    return tuple(ast.walk(ast.parse(module.read_text())))


@cache
def imports(module: Path) -> frozenset[str]:
    """What a module imports, at its top or in a function: modules, and names of modules as `module.name`."""
    found: set[str] = set()
    for node in nodes(module):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(found)
