"""An upgrade keeps histories: what the release before served, recorded and accepted is still there, with equal values.

`earlier_release.py` stores what a release promised; `changed.toml` lists every exception with its line of the changelog.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from earlier_release import (
    RULES,
    alert_names,
    flags,
    packed,
    promises,
    recorded_names,
    released_series,
    series_of,
    unpacked,
)
from observed import observe

from roce_exporter.catalog import CATALOG
from roce_exporter.catalog.row import FULL
from roce_exporter.exposition import Format, Renderer
from roce_exporter.exposition.served_series import ServedSeries
from roce_exporter.recording.recorded import load_recording

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[2]
RECORDINGS = ROOT / "tests/recordings"
CHANGED = tomllib.loads((Path(__file__).with_name("changed.toml")).read_text()).get("changed", [])
RELEASED = released_series()


def host_of(golden: str) -> str:
    """The recorded host of a golden file; one with several moments has a file per moment."""
    stem = golden.removesuffix(".prom")
    return stem if (RECORDINGS / stem).is_dir() else stem.rpartition(".")[0]


HOSTS = sorted({host_of(name) for name in RELEASED if name.endswith(".prom")})
EXPERIMENTAL = {row.name for row in CATALOG if row.stability != "stable"}
Broken = set[tuple[str, str]]
"""Kind and name of each promise that is not kept."""


def name_of(series: str) -> str:
    return series.partition("{")[0]


def broken_series(before: dict[str, str], after: dict[str, str]) -> Broken:
    """Stable series that are missing now, or have another value."""
    stable = {series for series in before if name_of(series) not in EXPERIMENTAL}
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


async def served(host: str) -> dict[str, dict[str, str]]:
    """The series of each moment of a recorded host with `--metrics.set=full`, by the name of its golden file."""
    moments = sum(place.name.isdecimal() for place in (RECORDINGS / host).iterdir())
    _, observations = await observe(load_recording(str(RECORDINGS / host)), max(1, moments))
    texts = [
        Renderer().render(ServedSeries(FULL).select(one.samples), Format.TEXT).decode()
        for one in observations
    ]
    return {
        f"{host}.{moment}.prom" if moments else f"{host}.prom": series_of(text)
        for moment, text in enumerate(texts)
    }


async def broken_on(host: str) -> Broken:
    now = await served(host)
    return set().union(*(broken_series(RELEASED[name], now[name]) for name in now.keys() & RELEASED.keys()))


def broken_on_switches() -> Broken:
    """Their golden files are compared byte for byte with what is served, with a real Redis, by golden/test_switch_sonic.py."""
    places = {name: ROOT / "tests/golden" / name for name in RELEASED if name.endswith(".series")}
    assert places
    return set().union(
        *(broken_series(RELEASED[name], series_of(places[name].read_text())) for name in places)
    )


def broken_rules_and_flags() -> Broken:
    """Names of recorded series, which dashboards of others read, of alerts, which routes and silences name, and flags."""
    before = promises()
    rules = "".join((ROOT / name).read_text() for name in RULES)
    after = {"record": recorded_names(rules), "alert": alert_names(rules), "flag": flags(ROOT)}
    return set().union(*(broken_names(kind, before[f"{kind}s"], names) for kind, names in after.items()))


@pytest.mark.parametrize("host", HOSTS)
async def test_a_host_keeps_its_series_and_values(host: str) -> None:
    assert not unlisted(await broken_on(host), CHANGED)


def test_switches_keep_their_series_and_values() -> None:
    assert not unlisted(broken_on_switches(), CHANGED)


def test_rules_and_flags_keep_their_names() -> None:
    assert not unlisted(broken_rules_and_flags(), CHANGED)


def test_the_stored_release_is_whole() -> None:
    """A file that lost its content would prove nothing."""
    assert len(HOSTS) > 40
    assert sum(map(len, RELEASED.values())) > 8000
    before = promises()
    assert min(len(before[key]) for key in ("records", "alerts", "flags")) > 20
    assert unpacked(packed(RELEASED)) == RELEASED


async def test_every_listed_change_is_needed_and_is_in_the_changelog() -> None:
    if not CHANGED:
        return
    broken = broken_on_switches() | broken_rules_and_flags()
    for host in HOSTS:
        broken |= await broken_on(host)
    assert not needless(broken, CHANGED)
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert not [entry["matches"] for entry in CHANGED if entry["changelog"] not in changelog]
    assert all(entry["reason"] for entry in CHANGED)


def test_a_change_of_each_kind_is_found_unless_it_is_listed() -> None:
    broken = broken_series({'a{x="1"}': "1", "b": "2", "c": "3"}, {"b": "4", "c": "3"})
    assert broken == {("series", 'a{x="1"}'), ("value", "b")}
    broken |= broken_names("flag", ["serve --old", "serve --kept"], {"serve --kept", "serve --new"})
    listed = [{"kind": "series", "matches": r"a\{.*"}, {"kind": "flag", "matches": "serve --old"}]
    assert unlisted(broken, listed) == {("value", "b")}
    assert needless(broken, [*listed, {"kind": "series", "matches": "b"}]) == ["b"]
