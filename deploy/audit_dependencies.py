"""Compare the lock files with a copy of the OSV database.

Usage: `python deploy/audit_dependencies.py DATABASE [LOCK ...]`. Needs: pip install pip-audit

DATABASE is the archive of OSV's records about PyPI (https://osv-vulnerabilities.storage.googleapis.com/PyPI/all.zip). Without LOCK all lock
files are compared. No query leaves the machine: pip-audit sends them to this process, which answers them from the archive in the form of
the OSV API. The exit code is 0 without a hit, 1 with a hit, 2 if the database cannot be used.
"""

# ruff: noqa: INP001, T201, S603 - a script, not a package; it prints what it finds and runs pip-audit

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[1]
Record = dict[str, Any]
FOREVER = Version("999999")


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
        """The records for a query of the OSV API: a package and a version. pip-audit leaves out those that are withdrawn."""
        name, version = canonicalize_name(query["package"]["name"]), Version(query["version"])
        return [one for one in self.records.get(name, []) if affects(one, name, version)]


def server_of(database: Database) -> ThreadingHTTPServer:
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


def main(place: Path, locks: list[Path]) -> int:
    """Print the date of the database and what pip-audit finds in each lock file; return the exit code."""
    try:
        database = Database(place)
    except (OSError, zipfile.BadZipFile, ValueError, LookupError) as error:
        print(f"{place}: {error}", file=sys.stderr)
        return 2
    print(f"{place}: {database.size} records, the newest of {database.date}", flush=True)
    with server_of(database) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        codes = []
        for lock in locks:
            print(f"{lock.name}:", flush=True)
            codes.append(audit(lock, f"http://127.0.0.1:{server.server_port}/v1/query"))
        server.shutdown()
    return max(codes)


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit(__doc__)
    given = [Path(one) for one in sys.argv[2:]]
    sys.exit(main(Path(sys.argv[1]), given or sorted(ROOT.glob("requirements*.lock"))))
