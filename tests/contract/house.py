"""`make house` counts what must not grow, prints it next to the ceilings of `house.tsv`, and lowers the ceilings.

`make house` rounds a ceiling up to its step, so that a small change fits. Raise one by hand, in the commit that has the reason.
"""

import ast
import subprocess
import sys
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # the package of this checkout

from package_modules import MODULES, PACKAGE, ROOT, imports, nodes

from roce_exporter.cli.commands import COMMANDS
from roce_exporter.cli.flags import FLAGS

CEILINGS = Path(__file__).with_name("house.tsv")
STEPS = {
    "package lines": 500,
    "package files": 10,
    "modules with one importer": 5,
    "modules of fewer than 100 lines": 5,
    "private functions of at most 6 lines used once": 10,
    "lines of generated files": 500,
    "repository lines": 5000,
    "repository files": 10,
}
"""What a ceiling is rounded up to; 1 for the others."""
LARGE, SMALL, LONG, SHORT = 500, 100, 50, 6
"""Lines of a large and of a small module, of a long function, and of one that may say no more than its body."""
GENERATED = (
    *(
        "docs/metrics.md",
        "docs/licences.md",
        "alerts/roce.rules.yml",
        "alerts/compat/*",
        "*requirements*.lock",
    ),
    *("dashboards/*.json", "dashboards/*.rules.yml", "deploy/kustomize/*.yaml", "deploy/windows/*.yml"),
    *("tests/golden/*.prom", "tests/golden/*.series", "tests/golden/*.tsv", "tests/drift/names.tsv"),
    *("tests/alerts/fired.yml", "tests/unit/*/golden/*"),
)
WAYS = {
    "modules that open HTTP connections": ("h11", "http.client", "urllib.request"),
    "modules that import pyroute2": ("pyroute2",),
    "modules that start threads": ("threading", "concurrent.futures"),
    "modules that read YAML or TOML": ("yaml", "tomllib"),
    "modules that import argparse": ("argparse",),
    "modules that draw on a terminal": ("rich",),
}
"""Ideas that have one place, and the libraries by which a second one is found."""


def one_importer() -> int:
    """The modules that one other module imports."""
    names = {".".join(place.relative_to(ROOT).with_suffix("").parts): place for place in MODULES}
    importers = Counter(name for place in MODULES for name in imports(place) & names.keys())
    return sum(count == 1 for count in importers.values())


def used_once() -> int:
    """The private functions of at most six lines that their module calls or names once."""
    found = 0
    for place in MODULES:
        used = Counter(node.id for node in nodes(place) if isinstance(node, ast.Name))
        used.update(node.attr for node in nodes(place) if isinstance(node, ast.Attribute))
        found += sum(
            used[node.name] == 1 and lines(node) <= SHORT
            for node in nodes(place)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if node.name.startswith("_") and not node.name.startswith("__")
        )
    return found


def lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function, without decorators."""
    return (node.end_lineno or 0) - node.lineno + 1


def library(place: Path, names: tuple[str, ...]) -> bool:
    """Whether a module imports one of these libraries, or a part of it."""
    return any(one == name or one.startswith(f"{name}.") for one in imports(place) for name in names)


def json_writers() -> int:
    """The modules that write JSON."""
    written = ({node.attr for node in nodes(one) if isinstance(node, ast.Attribute)} for one in MODULES)
    return sum(bool(names & {"dumps", "dump"}) for names in written)


def package() -> dict[str, int]:
    """What is counted in the package."""
    sizes = {place: len(place.read_text().splitlines()) for place in MODULES}
    others = [
        place for place in PACKAGE.rglob("*") if place.is_file() and place.suffix not in (".py", ".pyc")
    ]
    functions = [
        node
        for place in MODULES
        for node in nodes(place)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    inside = {place: size for place, size in sizes.items() if not place.stem.startswith("__")}
    return {
        "package lines": sum(sizes.values()) + sum(place.read_bytes().count(b"\n") for place in others),
        "package files": len(sizes) + len(others),
        "modules with one importer": one_importer(),
        f"modules of more than {LARGE} lines": sum(size > LARGE for size in inside.values()),
        f"modules of fewer than {SMALL} lines": sum(size < SMALL for size in inside.values()),
        f"functions of more than {LONG} lines": sum(lines(node) > LONG for node in functions),
        f"private functions of at most {SHORT} lines used once": used_once(),
        "modules that write JSON": json_writers(),
        **{way: sum(library(place, names) for place in MODULES) for way, names in WAYS.items()},
        "commands": len(COMMANDS),
        "flags": len({flag.name for flag in FLAGS if flag.name.startswith("-") and not flag.instead}),
    }


def repository() -> dict[str, int]:
    """What is counted in git's list of files; nothing without git."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    files = [
        one
        for one in done.stdout.split("\0")
        if one and not (ROOT / one).is_symlink() and (ROOT / one).is_file()
    ]
    counted = {
        one: content.count(b"\n") for one in files if b"\0" not in (content := (ROOT / one).read_bytes())
    }
    made = [size for one, size in counted.items() if any(fnmatch(one, pattern) for pattern in GENERATED)]
    found = {
        "lines of generated files": sum(made),
        "repository lines": sum(counted.values()),
        "repository files": len(files),
    }
    return found if files else {}


def ceilings() -> dict[str, int]:
    """The committed table."""
    rows = (line.split("\t") for line in CEILINGS.read_text().splitlines())
    return {name: int(ceiling) for name, ceiling in rows}


def rounded(name: str, count: int) -> int:
    """The lowest ceiling of a count."""
    step = STEPS.get(name, 1)
    return -(-count // step) * step


def main() -> None:
    """Print and lower. A new line of the table begins with its count."""
    known = ceilings() if CEILINGS.exists() else {}
    counted = package() | repository()
    for name, count in counted.items():
        mark = "  above its ceiling" if count > known.get(name, count) else ""
        sys.stdout.write(f"{name:<55}{count:>8,}{known.get(name, count):>9,}{mark}\n")
    lowered = {
        name: min(rounded(name, count), known.get(name, rounded(name, count)))
        for name, count in counted.items()
    }
    CEILINGS.write_text("".join(f"{name}\t{ceiling}\n" for name, ceiling in (known | lowered).items()))


if __name__ == "__main__":
    main()
