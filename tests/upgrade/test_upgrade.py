"""An upgrade keeps histories: what the release before served, recorded and accepted is still there, with equal values.

`earlier_release.py` stores what a release promised; `changed.toml` lists every exception with its line of the changelog.
"""

import asyncio
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from earlier_release import RULES, packed, promises, released_series, rule_names, series_of, unpacked
from observed import observe
from recorded import HOSTS, recording

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import FULL
from roce_exporter.cli.options import flags_of, renamed, renamed_flag
from roce_exporter.exposition import Format, Renderer
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.host.recorded.recorded import load_recording

ROOT = Path(__file__).parents[2]
CHANGED = tomllib.loads((Path(__file__).with_name("changed.toml")).read_text()).get("changed", [])
RELEASED = released_series()
EXPERIMENTAL = {row.name for row in CATALOG if row.stability != "stable"}
Broken = set[tuple[str, str]]
"""Kind and name of each promise that is not kept."""


def broken_series(before: dict[str, str], after: dict[str, str]) -> Broken:
    """Stable series that are missing now, or have another value."""
    stable = {series for series in before if series.partition("{")[0] not in EXPERIMENTAL}
    missing = {("series", series) for series in stable - after.keys()}
    return missing | {("value", one) for one in stable & after.keys() if before[one] != after[one]}


def broken_names(kind: str, before: Iterable[str], after: set[str]) -> Broken:
    return {(kind, name) for name in set(before) - after}


def unlisted(broken: Broken, changed: list[dict[str, str]]) -> Broken:
    """The broken promises that no entry of changed.toml lists."""
    return {
        (kind, name)
        for kind, name in broken
        if not any(entry["kind"] == kind and re.fullmatch(entry["matches"], name) for entry in changed)
    }


def needless(broken: Broken, changed: list[dict[str, str]]) -> list[str]:
    """The entries of changed.toml that list nothing that is broken."""
    return [entry["matches"] for entry in changed if unlisted(broken, [entry]) == broken]


def served(host: str) -> dict[str, dict[str, str]]:
    """The series of each moment of a recorded host with `--metrics.set=full`, by the name of its golden file."""
    kernel = load_recording(recording(host))
    moments = len(kernel.moments)
    _, observations = asyncio.run(observe(kernel, moments))
    return {
        f"{host}.{moment}.prom" if moments > 1 else f"{host}.prom": series_of(
            Renderer().render(ServedSeries(FULL).select(one.samples), Format.TEXT).decode()
        )
        for moment, one in enumerate(observations)
    }


def accepted(promised: Iterable[str]) -> set[str]:
    """The flags that are accepted, also those of earlier versions that `--help` no longer lists."""
    return {
        promise
        for promise in promised
        if any(is_known(promise + word) for word in ("", " --serve", " audit"))
    }


def is_known(promise: str) -> bool:
    """Whether a command has these flags, under its name of today or of before."""
    (command, *rest), *_ = renamed(promise.split())
    today = f"{command} {rest.pop(0)}" if command == "tool" else command
    rows = flags_of(today) + flags_of(promise.split(maxsplit=1)[0])
    known = {name for flag in rows for name in (flag.name, flag.short)} | {"--help"}
    return {renamed_flag(today, word).partition("=")[0] for word in rest if word.startswith("--")} <= known


@cache
def broken_now() -> frozenset[tuple[str, str]]:
    """Every promise that is not kept: series and values of hosts and switches, names of rules, alerts and flags.

    Series of switches are read from their golden files, which golden/test_switch_sonic.py compares with what is served.
    Recorded series are read by dashboards of others; routes and silences name alerts.
    """
    now = {name: series for host in HOSTS for name, series in served(host).items()}
    switches = [name for name in RELEASED if name.endswith(".series")]
    assert switches
    now |= {name: series_of((ROOT / "tests/golden" / name).read_text()) for name in switches}
    assert RELEASED.keys() <= now.keys(), "a recorded host of the release is gone"
    rules = "".join((ROOT / name).read_text() for name in RULES)
    before = promises()
    names = {
        "record": rule_names("record", rules),
        "alert": rule_names("alert", rules),
        "flag": accepted(before["flags"]),
    }
    broken = [broken_series(RELEASED[name], now[name]) for name in RELEASED]
    broken += [broken_names(kind, before[f"{kind}s"], after) for kind, after in names.items()]
    return frozenset().union(*broken)


def test_what_the_release_before_promised_is_kept() -> None:
    assert unlisted(set(broken_now()), CHANGED) == set()


def test_every_listed_change_is_needed_and_is_in_the_changelog() -> None:
    assert needless(set(broken_now()), CHANGED) == []
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert [
        entry["matches"] for entry in CHANGED if entry["changelog"] not in changelog or not entry["reason"]
    ] == []


def test_the_stored_release_is_whole() -> None:
    """A file that lost its content would prove nothing."""
    assert sum(name.endswith(".prom") for name in RELEASED) > 40
    assert sum(map(len, RELEASED.values())) > 8000
    before = promises()
    assert min(len(before[key]) for key in ("records", "alerts", "flags")) > 20
    assert unpacked(packed(RELEASED)) == RELEASED


def test_a_change_of_each_kind_is_found_unless_it_is_listed() -> None:
    broken = broken_series({'a{x="1"}': "1", "b": "2", "c": "3"}, {"b": "4", "c": "3"})
    assert broken == {("series", 'a{x="1"}'), ("value", "b")}
    broken |= broken_names("flag", ["serve --old", "serve --kept"], {"serve --kept", "serve --new"})
    listed = [{"kind": "series", "matches": r"a\{.*"}, {"kind": "flag", "matches": "serve --old"}]
    assert unlisted(broken, listed) == {("value", "b")}
    assert needless(broken, [*listed, {"kind": "series", "matches": "b"}]) == ["b"]
