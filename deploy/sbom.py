"""Print a bill of materials in CycloneDX 1.5: `python deploy/sbom.py LOCK FOLDER [EXTRA ...]`.

The folder has the wheels of the lock file and of the exporter itself; what they say about themselves is in the bill. The extras are
those of the exporter that the lock file includes. Needs the package `packaging`. `make release` runs it.
"""

# ruff: noqa: INP001 - a script next to what it describes, not a package
from __future__ import annotations

import json
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any

from licences import licence, locked
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PRODUCT = "roce-exporter"


def needed(package: Distribution, extras: Iterable[str]) -> Iterator[str]:
    """The names of the packages that a package requires here."""
    for one in map(Requirement, package.requires or ()):
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield canonicalize_name(one.name)


def component(package: Distribution, kind: str) -> dict[str, Any]:
    """One package; scanners find it by its purl."""
    name = canonicalize_name(package.metadata["Name"])
    expression = licence(package)
    return {
        "type": kind,
        "bom-ref": name,
        "name": name,
        "version": package.version,
        "description": package.metadata["Summary"],
        "licenses": [{"expression": expression} if " " in expression else {"license": {"id": expression}}],
        "purl": f"pkg:pypi/{name}@{package.version}",
    }


def bill(packages: Iterable[Distribution], versions: dict[str, str], extras: Iterable[str]) -> dict[str, Any]:
    """The bill of the exporter with these versions.

    Raises:
        LookupError: the packages lack one of them, or a licence cannot be read.
    """
    found = {canonicalize_name(one.metadata["Name"]): one for one in packages}
    if missing := [
        f"{name} {version}"
        for name, version in versions.items()
        if name not in found or found[name].version != version
    ]:
        raise LookupError(f"no wheel of {', '.join(missing)}")
    names = sorted(versions)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": component(found[PRODUCT], "application")},
        "components": [component(found[name], "library") for name in names],
        "dependencies": [
            {
                "ref": name,
                "dependsOn": sorted({*needed(found[name], extras if name == PRODUCT else ())} & {*names}),
            }
            for name in (PRODUCT, *names)
        ],
    }


def main(lock: str, folder: str, *extras: str) -> None:
    """Print the bill."""
    wheels = [str(place) for place in sorted(Path(folder).glob("*.whl"))]
    sys.stdout.write(json.dumps(bill(distributions(path=wheels), locked(lock), extras), indent=2) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
