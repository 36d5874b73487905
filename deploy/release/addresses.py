"""Write the owner's address into every file that has it: `addresses.py`, which `make generate` runs; `addresses.py --check` only looks.

The one constant is `Homepage` in `pyproject.toml`. With `--check` the exit code is 2, and one line says why, while it is not set or not written everywhere.
"""

# ruff: noqa: INP001 - a script of the release, not a package
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHART = "deploy/helm/roce-exporter/Chart.yaml"
FILES = ("pyproject.toml", "SECURITY.md", "deploy/release/publishing.md", CHART)
"""The chart is the last: it says which address the files have."""
UNSET = "owner.example"


def written(root: Path, home: str) -> dict[str, str]:
    """The text of each file with the addresses that begin with `home`.

    Raises:
        OSError: a file cannot be read.
        LookupError: the chart has no `home`.
    """
    before = re.findall("^home: (.+)$", (root / CHART).read_text(), re.MULTILINE)[0]
    either = "|".join(re.escape(one) for one in sorted((before, home), key=len, reverse=True))
    return {
        name: re.sub(rf"(?:{either})(?![\w-])", lambda _: home, (root / name).read_text()) for name in FILES
    }


def main(root: Path, *words: str) -> int:
    """Write the files, or with `--check` say what is to do first; the exit code."""
    home = tomllib.loads((root / "pyproject.toml").read_text())["project"]["urls"]["Homepage"]
    texts = written(root, home)
    if "--check" not in words:
        for name, text in texts.items():
            (root / name).write_text(text)
        return 0
    old = [name for name, text in texts.items() if (root / name).read_text() != text]
    why = f"set Homepage in pyproject.toml in place of {UNSET}" if UNSET in home else ""
    why = why or (f"other addresses than Homepage in pyproject.toml: {' '.join(old)}" if old else "")
    if why:
        sys.stderr.write(f"{why}, then `make generate`\n")
    return 2 if why else 0


if __name__ == "__main__":
    sys.exit(main(ROOT, *sys.argv[1:]))
