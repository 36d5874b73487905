"""Print the provenance of a release, an in-toto statement with a predicate of SLSA 1: `provenance.py FOLDER COMMIT`, in the source's root.

FOLDER has the downloads, COMMIT is their source. It says what was built (each file with its hash), from what (the commit; the lock files, which name
each package by hash; the bases of the image) and by what. It has neither times nor machines: the same commit gives the same bytes.
`SHA256SUMS` lists it, and so the signature covers it. The specification: https://slsa.dev/spec/v1.0/provenance.
"""

# ruff: noqa: INP001 - a script of the release, not a package
import hashlib
import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any


def described(path: Path) -> dict[str, Any]:
    """A file as in-toto names it."""
    return {"name": str(path), "digest": {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}}


def statement(folder: Path, commit: str) -> dict[str, Any]:
    """The statement about the files of a folder; the environment has `PACKAGES`, and the bases of the image as `BUILD` and `RUNTIME`."""
    home = tomllib.loads(Path("pyproject.toml").read_text())["project"]["urls"]["Homepage"]
    way = f"{home}/blob/{commit}/docs/releasing.md"
    bases = [os.environ[name].partition("@sha256:") for name in ("BUILD", "RUNTIME") if os.environ.get(name)]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{**described(path), "name": path.name} for path in sorted(folder.iterdir())],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": way,
                "externalParameters": {"command": "make release", "packages": os.environ.get("PACKAGES", "")},
                "resolvedDependencies": [
                    {"uri": f"git+{home}", "digest": {"gitCommit": commit}},
                    *map(described, sorted(Path().glob("requirements*.lock"))),
                    described(Path("deploy/manual/requirements.lock")),
                    *({"uri": f"docker://{name}", "digest": {"sha256": digest}} for name, _, digest in bases),
                ],
            },
            "runDetails": {"builder": {"id": f"{way}#steps"}},
        },
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(statement(Path(sys.argv[1]), sys.argv[2]), indent=1) + "\n")
