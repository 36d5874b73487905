"""Whether the ports of one host that are of the same kind are set alike."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from roce_exporter.audit.fingerprint import fingerprint, settings_of
from roce_exporter.audit.verdict import Check, Mend, Verdict, judged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from roce_exporter.audit.facts import Facts
    from roce_exporter.audit.profile import Profile


def not_judged(facts: Facts, profile: Profile) -> None:
    """Nothing: this check needs all ports, see `compare`."""


CONSISTENCY = Check(
    "consistency",
    "set as the ports beside it",
    "Jobs stripe over all ports of a host: the one that is set otherwise sets the pace.",
    not_judged,
    Mend("compare them: roce-exporter audit --format json"),
)


def compare(ports: Sequence[Facts]) -> Iterator[Verdict]:
    """A verdict per port that is not the only one of its driver, model and function here.

    Each shall be set as most of them are, or as the first where no setting is the most frequent. What one of two ports
    does not tell is no difference.
    """
    kinds: dict[tuple[str, str], list[Facts]] = {}
    for facts in ports:
        if facts.netdev:
            kinds.setdefault((facts.dialect, facts.kind), []).append(facts)
    for alike in kinds.values():
        if len(alike) > 1:
            yield from _compare([(facts, settings_of(facts)) for facts in alike])


def _compare(ports: Sequence[tuple[Facts, Mapping[str, object]]]) -> Iterator[Verdict]:
    (usual, _), *_ = Counter(fingerprint(settings) for _, settings in ports).most_common(1)
    model, wanted = next(pair for pair in ports if fingerprint(pair[1]) == usual)
    for facts, settings in ports:
        names = sorted(wanted.keys() & settings.keys())
        other = [name for name in names if wanted[name] != settings[name]]
        expected = f"as {model.netdev} of {model.device}"
        found = f"differs in {', '.join(other)}" if other else expected
        yield Verdict(CONSISTENCY, facts, judged(not other, expected, found))
