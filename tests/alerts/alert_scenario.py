"""How the alerts are tested: a case of `cases/AREA.yml` is one way in which an alert fires, and one history with a cluster per variant.

In cluster `east` the first hosts are healthy for `lead` minutes, then faulty for `sick` minutes, then healthy for `tail` minutes; the
others are healthy throughout. The other clusters differ in one thing each: a series is just below its threshold, or missing, or the
exporters restart. All have hosts and devices of the same names, so an alert that mixes clusters or hosts is found too.

A case has `series`, with the movement of each: `rate 2` (a counter's growth per second), `jump 2` (once, when the fault begins),
`level 2` (a gauge) or `always 2`. Then follow, if they are not 0 or would be pointless, the value just `below` the threshold and the
`healthy` one; `none` is no sample. What is wrong is less than twice the threshold, so that a threshold twice as high is found as well.
Words in capitals are labels and series of `cases/shared.yml`. `<host>` is the name of the host; a switch is scraped under that name too.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import yaml

FOLDER = Path(__file__).with_name("cases")
LARGE = 1_000_000
"""The initial value of a counter: that of a host that has been up for a long time."""


class Shape(NamedTuple):
    """How a series moves: a value while the hosts are faulty, just below the threshold, and while they are healthy."""

    kind: str
    sick: float | None
    below: float | None = None
    healthy: float | None = 0.0


Series = dict[str, Shape]


@dataclass(frozen=True, slots=True)
class Case:
    """One way in which an alert fires."""

    alert: str
    series: Series
    labels: str = 'device="mlx5_0",port="1"'
    """The labels of the alert besides cluster, job, instance, severity and scope."""
    name: str = ""
    """What is special about the case; empty for the ordinary one."""
    background: Series = field(default_factory=dict)
    """Additional series of the faulty hosts; they change at most the text."""
    texts: Mapping[str, Series] = field(default_factory=dict)
    """Other backgrounds with which the alert fires too, and whose texts are compared."""
    silent: Mapping[str, Series] = field(default_factory=dict)
    """Series with which the alert does not fire, instead of those of the case."""
    only: str = ""
    """`east`: no other cluster, because another case has the same."""
    excepted: bool = False
    """The alert leaves out clusters that the thresholds list, `none` as delivered."""
    fabric: bool = False
    """The alert is about a cluster, so it has no job and no instance."""
    faulty: int = 1
    hosts: int = 2
    few: tuple[tuple[int, int], ...] = ()
    """Numbers of faulty hosts and of all hosts with which the alert does not fire."""
    spare: frozenset[str] = frozenset()
    """Metrics without which the alert still fires."""
    lead: int = 20
    sick: int = 30
    tail: int = 15
    step: int = 30
    """Seconds between scrapes."""
    look: int = 0
    """Minutes after the start of the fault when the text is read; 0: when it ends, and the alert lasts as long as the fault."""

    @property
    def title(self) -> str:
        """The name of the case in tests and in fired.yml."""
        return f"{self.alert}, {self.name}" if self.name else self.alert

    @property
    def read_at(self) -> int:
        """The minute in which the text is read."""
        return self.lead + (self.look or self.sick - 1)

    @property
    def minutes(self) -> int:
        """The length of the history."""
        return self.lead + self.sick + self.tail


@cache
def shared() -> dict[str, dict[str, Any]]:
    """What `cases/shared.yml` has: labels and groups of series."""
    return yaml.safe_load((FOLDER / "shared.yml").read_text())


def labels_written(text: str) -> str:
    """Labels with the words in capitals replaced."""
    known = shared()["labels"]
    while (
        replaced := re.sub(r"(?<![\w\"])[A-Z][A-Z_]+(?![\w\"])", lambda word: known[word[0]], text)
    ) != text:
        text = replaced
    return text


def series_written(given: Mapping[str, str | None]) -> Series:
    """Series as a case has them."""
    found: Series = {}
    for name, text in given.items():
        if text is None:
            found |= series_written(shared()["series"][name])
        else:
            found[labels_written(name)] = _shape(text)
    return found


def _shape(text: str) -> Shape:
    kind, *words = text.replace(",", "").split()
    values = {"sick": words[0], **dict(zip(words[1::2], words[2::2], strict=True))}
    if kind == "always":
        values["healthy"] = words[0]
    return Shape(kind, **{name: None if word == "none" else float(word) for name, word in values.items()})


def _case(alert: str, given: dict[str, Any]) -> Case:
    made = given | {name: series_written(given[name]) for name in ("series", "background") if name in given}
    for name in ("texts", "silent"):
        made[name] = {title: series_written(series) for title, series in given.get(name, {}).items()}
    if "labels" in given:
        made["labels"] = labels_written(given["labels"])
    made["spare"] = frozenset(given.get("spare", ()))
    return Case(alert, **made)


CASES = tuple(
    _case(alert, given)
    for place in sorted(FOLDER.glob("*.yml"))
    if place.stem != "shared"
    for alert, ways in yaml.safe_load(place.read_text()).items()
    for given in ways
)


SAME, LASTS = "fires as in cluster east", "fires when the fault ends"
SILENT, ELSEWHERE = "does not fire", "fires at most with other labels"
USUAL, NEW, AWAY = range(3)
"""How series are served: always, or host h1 has none before `APPEARS`, or none in `GAP`."""
APPEARS, GAP = 4, (4, 14)
"""Minutes. Ten without samples are more than Prometheus remembers one."""


class Variant(NamedTuple):
    """A cluster of a case; the cluster without a name has no label `cluster`."""

    cluster: str
    series: Series
    faulty: int
    expected: str
    hosts: int
    others: Series | None = None
    """The series of the hosts that are not faulty, where they are not those of the faulty ones."""
    restart: int = 0
    """Minute at which every exporter restarts: two scrapes are missing, and counters begin at zero. 0: no restart."""
    served: int = USUAL


def variants(case: Case) -> Iterator[Variant]:
    """All clusters of a case; `east` is the first."""
    usual = case.series | case.background
    fires = Variant("east", usual, case.faulty, SAME, case.hosts)
    yield fires
    for name, background in case.texts.items():
        yield fires._replace(cluster=name, series=case.series | background)
    if case.only:
        return
    yield fires._replace(cluster="")
    healthy = fires._replace(faulty=0, expected=SILENT)
    yield healthy._replace(cluster="healthy hosts that restart", restart=case.lead + 6)
    if not case.look and any(name != "up" or shape.sick is not None for name, shape in case.series.items()):
        yield fires._replace(cluster="faulty hosts that restart", expected=LASTS, restart=case.lead + 6)
    for faulty, hosts in case.few:
        yield fires._replace(
            cluster=f"{faulty} of {hosts} hosts", faulty=faulty, hosts=hosts, expected=SILENT
        )
    if case.excepted:
        yield fires._replace(cluster="none", expected=SILENT)
    yield from _near(case, fires._replace(expected=SILENT))
    yield from _excused(case, fires)
    if any(metric(one).endswith("_total") for one in case.series):
        for name, served in (("a new host", NEW), ("an exporter", AWAY)):
            yield healthy._replace(cluster=f"{name} that returns with old counts", served=served)


def _near(case: Case, silent: Variant) -> Iterator[Variant]:
    """A series is just below the threshold, or another host or another device has it."""
    for number, (series, shape) in enumerate(case.series.items()):
        if shape.below is not None:
            below = silent.series | {series: shape._replace(sick=shape.below)}
            yield silent._replace(cluster=f"series {number} just below: {metric(series)}", series=below)
    for name in sorted({metric(series) for series in case.series} - case.spare):
        lacking = {series: shape for series, shape in silent.series.items() if metric(series) != name}
        yield silent._replace(cluster=f"without {name}", series=lacking, others=silent.series)
        other = {
            elsewhere(series): shape for series, shape in silent.series.items() if metric(series) == name
        }
        if lacking and "device=" in case.labels and not other.keys() & silent.series.keys():
            yield silent._replace(
                cluster=f"another device has {name}", series=lacking | other, expected=ELSEWHERE
            )


def _excused(case: Case, fires: Variant) -> Iterator[Variant]:
    """Something excuses the fault; it does not if it is on another host or another device."""
    for name, series in case.silent.items():
        excused = fires._replace(cluster=name, series=series, expected=SILENT)
        yield excused
        excuse = {one: shape for one, shape in series.items() if one not in case.series}
        if not excuse or case.fabric or "host=" in case.labels:
            continue
        always = {one: shape._replace(healthy=shape.sick) for one, shape in excuse.items()}
        yield fires._replace(cluster=f"{name}, on another host", others=fires.series | always)
        if all(elsewhere(one) != one for one in excuse):
            other = {elsewhere(one): shape for one, shape in excuse.items()}
            yield fires._replace(cluster=f"{name}, on another device", series=fires.series | other)


def elsewhere(series: str) -> str:
    """The same series of another device of the host, or of another port of the switch."""
    if "leaf-<host>" in series:
        return series.replace('port="Ethernet0"', 'port="Ethernet8"')
    return series.replace('device="mlx5_0"', 'device="mlx5_8"').replace('netdev="ens1f', 'netdev="ens8f')


def metric(series: str) -> str:
    """The metric of a series."""
    return series.split("{", maxsplit=1)[0]


def labels_of(text: str) -> dict[str, str]:
    """Labels parsed from text."""
    return dict(re.findall(r'(\w+)="([^"]*)"', text))


def input_series(case: Case, variant: Variant) -> Iterator[dict[str, str]]:
    """The series of a variant, in promtool's notation."""
    cluster = f'cluster="{variant.cluster}",' if variant.cluster else ""
    away = variant.served in (NEW, AWAY)
    for number in range(1, variant.hosts + 1):
        target = f'{cluster}job="roce",instance="h{number}"'
        faulty = number <= variant.faulty
        for series, shape in (variant.series if faulty or variant.others is None else variant.others).items():
            inside = series.removeprefix(metric(series)).strip("{}")
            name = f"{metric(series)}{{{target}{',' if inside else ''}{inside}}}"
            values = _values(
                case, variant if number == 1 or not away else variant._replace(served=USUAL), shape, faulty
            )
            yield {"series": name.replace("<host>", f"h{number}"), "values": " ".join(values)}


def _values(case: Case, variant: Variant, shape: Shape, faulty: bool) -> Iterator[str]:
    """The values, with equal steps as promtool writes them."""
    total: float = LARGE
    onset, end = case.lead, case.lead + case.sick
    absent = _absent(variant, 2 * case.step // 60)
    served = False
    for begin, until in pairwise(sorted({0, onset, end, case.minutes, *absent})):
        scrapes = (until - begin) * 60 // case.step
        now = shape.sick if faulty and onset <= begin < end else shape.healthy
        grows = now * case.step if shape.kind == "rate" else 0
        if shape.kind == "jump" and begin == onset:
            total += now
        if absent and absent[0] <= begin < absent[1]:
            total = 0 if variant.restart else total
            yield f"stale _x{scrapes - 1}" if served else f"_x{scrapes}"
            served = False
        elif shape.kind in ("level", "always"):
            yield f"_x{scrapes}" if now is None else f"{now}x{scrapes - 1}"
            served = now is not None
        else:
            yield f"{total + grows}+{grows}x{scrapes - 1}"
            for _ in range(
                scrapes
            ):  # as promtool does: the sum of all steps at once differs in the last digit, a counter reset
                total += grows
            served = True


def _absent(variant: Variant, restart: int) -> tuple[int, ...]:
    """The minutes in which a variant has no samples: the first and the one after the last."""
    if variant.restart:
        return variant.restart, variant.restart + restart
    return {NEW: (0, APPEARS), AWAY: GAP}.get(variant.served, ())
