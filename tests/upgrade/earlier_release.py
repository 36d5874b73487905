"""What a release promised: the series of each recorded host, the names of its rules, and the flags of its commands.

`python tests/upgrade/earlier_release.py REVISION` writes `released.txt.xz` and `released.toml` from a revision of this repository: series and
values from its golden files, which its own tests compared byte for byte with what it served in the set full; flags from its `--help`.
"""

import io
import json
import lzma
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
GOLDEN = "tests/golden"
RULES = ("alerts/roce.rules.yml", "dashboards/roce-dashboards.rules.yml")
SERIES = HERE / "released.txt.xz"
PROMISES = HERE / "released.toml"
Hosts = dict[str, dict[str, str]]


def series_of(text: str) -> dict[str, str]:
    """Each series of an exposition, or of a `.series` file, and its value."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {series: value for series, _, value in (line.rpartition(" ") for line in lines)}


def golden_series(place: Path) -> dict[str, str]:
    """The series of a golden file, which may hold what differs from another one."""
    text = place.read_text()
    base = re.match(r"# base (\S+)\n", text)
    if not base:
        return series_of(text)
    found = golden_series(place.with_name(f"{base[1]}.prom"))
    for series in series_of("\n".join(re.findall(r"^-(.*)$", text, re.MULTILINE))):
        del found[series]
    return found | series_of("\n".join(re.findall(r"^\+(.*)$", text, re.MULTILINE)))


def packed(hosts: Hosts) -> str:
    """One line per series and value, with the hosts that have it: recorded hosts have most of their series in common."""
    having: dict[str, list[str]] = {}
    for host in sorted(hosts):
        for series, value in hosts[host].items():
            having.setdefault(f"{series} {value}", []).append(host)
    return "".join(f"{','.join(found)} {line}\n" for line, found in sorted(having.items()))


def unpacked(text: str) -> Hosts:
    """The inverse of `packed`."""
    hosts: Hosts = {}
    for line in text.splitlines():
        names, _, rest = line.partition(" ")
        series, _, value = rest.rpartition(" ")
        for host in names.split(","):
            hosts.setdefault(host, {})[series] = value
    return hosts


def released_series() -> Hosts:
    """Of each golden file of the release, by file name: its series and values."""
    return unpacked(lzma.decompress(SERIES.read_bytes()).decode())


def rule_names(kind: str, rules: str) -> set[str]:
    """The names of the rules of a kind, `record` or `alert`, in a file of rules."""
    return set(re.findall(rf"^ *-? *{kind}: (\S+)$", rules, re.MULTILINE))


def promises() -> dict[str, object]:
    """The revision, `records`, `alerts` and `flags` of the release."""
    return tomllib.loads(PROMISES.read_text())


HELP = """
import contextlib, sys
from roce_exporter.cli import main
for words in sys.argv[1:]:
    sys.argv[1:] = words.split()
    with contextlib.suppress(SystemExit):
        main()
"""


def printed_help(checkout: Path, *requests: str) -> str:
    """The help texts that a checkout prints, from one process."""
    command = [sys.executable, "-c", HELP, *requests]
    narrow = {**os.environ, "COLUMNS": "80"}
    return subprocess.run(
        command, cwd=checkout, capture_output=True, text=True, check=True, env=narrow
    ).stdout


def flags(checkout: Path) -> set[str]:
    """`COMMAND --flag` for every flag of every command of a checkout."""
    commands = re.findall(r"^    ([a-z]+)  ", printed_help(checkout, "--help"), re.MULTILINE)
    texts = printed_help(checkout, *(f"{one} --help" for one in commands)).split("usage: roce-exporter ")[1:]
    return {
        f"{text.split()[0]} {flag}"
        for text in texts
        for flag in re.findall(r"^  (?:-\w(?: \S+)?, )?(--[a-z][a-z.-]*)", text, re.MULTILINE)
    }


def main(revision: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        wanted = ["roce_exporter", GOLDEN, *RULES]
        archive = subprocess.run(
            ["git", "archive", revision, *wanted], cwd=ROOT, capture_output=True, check=True
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
        checkout = Path(folder)
        places = sorted(
            place for place in (checkout / GOLDEN).iterdir() if place.suffix in (".prom", ".series")
        )
        hosts = {place.name: golden_series(place) for place in places}
        rules = "".join((checkout / name).read_text() for name in RULES)
        names = {f"{kind}s": rule_names(kind, rules) for kind in ("record", "alert")} | {
            "flags": flags(checkout)
        }
    command = ["git", "rev-parse", revision]
    full = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    SERIES.write_bytes(lzma.compress(packed(hosts).encode(), preset=9 | lzma.PRESET_EXTREME))
    lines = [f'# Written by "python tests/upgrade/earlier_release.py {revision}"\nrevision = "{full}"\n']
    for key, found in names.items():
        lines.append(f"{key} = [\n" + "".join(f"  {json.dumps(one)},\n" for one in sorted(found)) + "]\n")
    PROMISES.write_text("".join(lines))


if __name__ == "__main__":
    main(sys.argv[1])
