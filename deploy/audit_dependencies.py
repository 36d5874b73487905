"""Compare the lock files with a copy of the OSV database, or with what the package index knows of each version.

Usage: `python deploy/audit_dependencies.py DATABASE|index [LOCK ...]`. Needs: pip install pip-audit

DATABASE is the archive of OSV's records about PyPI (https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip): no query leaves the machine.
`index` reads the same records from the pages of https://pypi.org/pypi/ about the locked packages. Without LOCK all lock files are compared. pip-audit
sends its queries to this process, which answers them in the form of the OSV API. The exit code is 0 without a hit, 1 with a hit, 2 if the database cannot
be used, or the index does not know all versions: a mirror may have only the page of the newest one.
"""

# ruff: noqa: INP001, T201, S310, S603 - a script, not a package; it prints what it finds, reads one address and runs pip-audit

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
import zipfile
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[1]
Record = dict[str, Any]
FOREVER = Version("999999")
INDEX = "https://pypi.org/pypi"
LOCKED = re.compile(r"^([\w.-]+)==([^\s;]+)", re.MULTILINE)


class Source(Protocol):
    """What answers a query of the OSV API."""

    def found(self, query: Record) -> list[Record]:
        """The records for a package and a version. pip-audit leaves out those that are withdrawn."""


def in_range(events: list[dict[str, str]], version: Version) -> bool:
    """Whether a version is affected by the events of one range (OSV schema 1.7, "Evaluation")."""
    affected = False
    moments = [
        (FOREVER if text == "*" else Version(text), kind) for one in events for kind, text in one.items()
    ]
    for moment, kind in sorted(moments, key=lambda pair: (pair[0], pair[1] != "introduced")):
        if kind == "introduced" and version >= moment:
            affected = True
        elif (kind == "fixed" and version >= moment) or (kind == "last_affected" and version > moment):
            affected = False
    return affected


def affects(record: Record, name: str, version: Version) -> bool:
    """Whether a record is about this version of a package. A version that cannot be compared counts as affected."""
    try:
        return any(
            any(Version(one) == version for one in affected.get("versions", []))
            or any(
                in_range(one["events"], version)
                for one in affected.get("ranges", [])
                if one["type"] == "ECOSYSTEM"
            )
            for affected in record.get("affected", [])
            if affected["package"]["ecosystem"] == "PyPI"
            and canonicalize_name(affected["package"]["name"]) == name
        )
    except InvalidVersion:
        return True


class Database:
    """The records of an archive, by package, and the date of the newest."""

    def __init__(self, place: Path) -> None:
        """Read the archive.

        Raises:
            OSError: the file cannot be read.
            zipfile.BadZipFile: it is not an archive.
            ValueError: it has no record.
        """
        self.records: dict[str, list[Record]] = {}
        self.date = ""
        self.size = 0
        with zipfile.ZipFile(place) as archive:
            for name in archive.namelist():
                self._add(json.loads(archive.read(name)))
        if not self.size:
            raise ValueError("the archive has no record")

    def _add(self, record: Record) -> None:
        self.size += 1
        self.date = max(self.date, record["modified"])
        names = {
            canonicalize_name(one["package"]["name"])
            for one in record.get("affected", [])
            if "package" in one
        }
        for name in names:
            self.records.setdefault(name, []).append(record)

    def found(self, query: Record) -> list[Record]:
        """The records of the archive, by the ranges and versions that they list."""
        name, version = canonicalize_name(query["package"]["name"]), Version(query["version"])
        return [one for one in self.records.get(name, []) if affects(one, name, version)]


def page_of(place: str) -> Record:
    """What the index says of a project or of a version of it; nothing if it has no such page.

    Raises:
        OSError: the index did not answer.
        ValueError: it did not answer in JSON.
    """
    try:
        with urllib.request.urlopen(f"{INDEX}/{place}/json", timeout=60) as answer:
            return dict(json.load(answer))
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return {}
        raise


class Index:
    """The vulnerabilities of the locked versions, as the index has them, and the versions that it does not know."""

    def __init__(self, locks: list[Path]) -> None:
        """Read the pages.

        Raises:
            OSError: the index did not answer, or a lock file cannot be read.
            ValueError: it did not answer in JSON.
        """
        self.records: dict[tuple[str, str], list[Record]] = {}
        self.unknown: list[str] = []
        for name, version in sorted({pair for lock in locks for pair in LOCKED.findall(lock.read_text())}):
            page = page_of(f"{name}/{version}") or page_of(name)
            if page.get("info", {}).get("version") == version:
                records = [self._record(name, one) for one in page["vulnerabilities"]]
                self.records[canonicalize_name(name), version] = records
            else:
                self.unknown.append(f"{name} {version}")

    @staticmethod
    def _record(name: str, one: Record) -> Record:
        """In OSV's form, as far as pip-audit reads it."""
        ranges = [{"type": "ECOSYSTEM", "events": [{"fixed": version} for version in one["fixed_in"]]}]
        package = {"name": canonicalize_name(name), "ecosystem": "PyPI"}
        return one | {"affected": [{"package": package, "ranges": ranges}]}

    def found(self, query: Record) -> list[Record]:
        """The records of the page."""
        return self.records.get((query["package"]["name"], query["version"]), [])


def server_of(database: Source) -> ThreadingHTTPServer:
    """A server on loopback that answers like https://api.osv.dev/v1/query."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found = database.found(query)
            body = json.dumps({"vulns": found} if found else {}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            """Log nothing."""

    return ThreadingHTTPServer(("127.0.0.1", 0), Answer)


def audit(lock: Path, url: str) -> int:
    """The exit code of pip-audit, which prints what it finds."""
    program = Path(sys.executable).with_name("pip-audit")
    with tempfile.TemporaryDirectory() as cache:
        command = [
            str(program),
            "--strict",
            "--vulnerability-service=osv",
            f"--osv-url={url}",
            f"--cache-dir={cache}",
        ]
        command += ["--disable-pip", "--no-deps", "--progress-spinner=off", f"--requirement={lock}"]
        return subprocess.run(command, env={**os.environ, "NO_PROXY": "127.0.0.1"}, check=False).returncode


def main(place: str, locks: list[Path]) -> int:
    """Print what the source is and what pip-audit finds in each lock file; return the exit code."""
    source: Source
    unknown: list[str] = []
    try:
        if place == "index":
            source = index = Index(locks)
            said, unknown = f"{INDEX}: {len(index.records)} versions", index.unknown
        else:
            source = database = Database(Path(place))
            said = f"{place}: {database.size} records, the newest of {database.date}"
    except (OSError, zipfile.BadZipFile, ValueError, LookupError) as error:
        print(f"{place}: {error}", file=sys.stderr)
        return 2
    print(said, flush=True)
    with server_of(source) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        codes = []
        for lock in locks:
            print(f"{lock}:", flush=True)
            codes.append(audit(lock, f"http://127.0.0.1:{server.server_port}/v1/query"))
        server.shutdown()
    if unknown:
        print(f"not known of: {', '.join(unknown)}", file=sys.stderr)
    return max(codes) or (2 if unknown else 0)


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit(__doc__)
    given = [Path(one) for one in sys.argv[2:]]
    every = (*ROOT.glob("requirements*.lock"), *ROOT.glob("*/*/requirements.lock"))
    sys.exit(main(sys.argv[1], given or sorted(every)))
