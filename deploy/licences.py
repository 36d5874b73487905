"""Write docs/licences.md: the licence of every locked package, from its own metadata.

Run by deploy/lock.sh in an environment that has all packages of `LOCKS`: `python deploy/licences.py`.
"""

# ruff: noqa: INP001 - a script next to what it describes, not a package

from __future__ import annotations

import re
from importlib.metadata import Distribution, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "docs/licences.md"
LOCKS = sorted(
    str(place.relative_to(ROOT))
    for pattern in ("requirements*.lock", "*/*/requirements.lock")
    for place in ROOT.glob(pattern)
)
"""The lock files, those of the programs that write manual pages and the site included."""
PINNED = re.compile(r"^([a-z0-9][a-z0-9.-]*)==(\S+) ", re.MULTILINE)

EXPRESSIONS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD": "BSD-3-Clause",
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: BSD License": "BSD-3-Clause",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
"""The SPDX expression of what older metadata say in words. dpkt, colorama and jinja2 say BSD: the texts in their wheels have three clauses."""
UNDECLARED = {"gojsonnet": "Apache-2.0", "mergedeep": "MIT", "promql-parser": "MIT"}
"""Packages without a licence in their metadata: what the text in their wheel is."""

HEAD = """# Licences

Every package of the lock files, with the SPDX expression of its licence. `deploy/lock.sh` writes this page from the packages' metadata.
The exporter is under Apache-2.0 ([LICENSE](../LICENSE)). Packages marked *daemon* are in the Debian package and in the image, with the
texts of their licences in `*.dist-info`. scapy is under the GPL: tests and a benchmark compare our decoders
with it, and no package includes it. pyroute2 is used under Apache-2.0, in tests.

| package | version | licence | daemon |
| --- | --- | --- | --- |
"""


def locked(*names: str) -> dict[str, str]:
    """The versions that these lock files pin, by package."""
    return dict(pair for name in names for pair in PINNED.findall((ROOT / name).read_text()))


def licence(package: Distribution) -> str:
    """The SPDX expression of an installed package.

    Raises:
        LookupError: its metadata do not say it in a form that is known here.
    """
    metadata = package.metadata
    declared = [metadata.get("License-Expression"), UNDECLARED.get(metadata["Name"]), metadata.get("License")]
    classifiers = [one for one in metadata.get_all("Classifier", []) if one.startswith("License :: OSI")]
    for words in (*declared, *classifiers):
        if words:
            return EXPRESSIONS.get(words, words)
    raise LookupError(
        f"{metadata['Name']}: read the licence in its wheel and add it to {Path(__file__).name}"
    )


def table() -> str:
    """The whole page."""
    shipped = locked("requirements.lock")
    every = locked(*LOCKS)
    rows = [
        f"| {name} | {version} | {licence(distribution(name))} | {'daemon' if name in shipped else ''} |\n"
        for name, version in sorted(every.items())
    ]
    return HEAD + "".join(rows)


if __name__ == "__main__":
    TABLE.write_text(table())
