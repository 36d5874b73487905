"""A diagnosis as text for people, at most 100 columns wide, and as JSON for scripts."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

from roce_exporter.checks.health.port_fault import Health, Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from roce_exporter.checks.health.port_fault import Diagnosis, PortFault
    from roce_exporter.view.history import History

TEXT, JSON = "text", "json"
FORMATS = (TEXT, JSON)

COLUMNS = 100
NAME = 10
"""Width of the names of parts."""
RUNBOOKS = "alerts/runbooks"

AT_FAULT = {
    Side.HOST: "this host",
    Side.LINK: "the link",
    Side.FABRIC: "the fabric",
    Side.PEER: "the peer",
    Side.UNKNOWN: "not known",
}
MAKES = {Health.FAILED: "failed", Health.DEGRADED: "degraded", Health.HEALTHY: "the port is fit"}
NOTHING = "Nothing wrong in what I can see."


def diagnosis_json(diagnosis: Diagnosis) -> str:
    """The document of `diagnose --format=json`, see docs/diagnosis.md."""
    document = {"findings": [_object(one) for one in diagnosis.findings], "unseen": list(diagnosis.unseen)}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _object(fault: PortFault) -> dict[str, Any]:
    return {
        "device": fault.device,
        "port": fault.port,
        "side": fault.side.value,
        "cause": fault.cause.name,
        "evidence": list(fault.evidence),
        "against": list(fault.against),
        "next": list(fault.next),
    }


def diagnosis_text(diagnosis: Diagnosis, history: History, source: str) -> str:
    """What is wrong in order of harm, and what could not be seen. `source` says where the history is from."""
    lines = [*_filled(f"{source}: {span_of(history)}."), ""]
    for number, fault in enumerate(diagnosis.findings, 1):
        lines += [*_finding(number, fault), ""]
    if not diagnosis.findings:
        lines += [NOTHING, ""]
    if diagnosis.unseen:
        lines += ["Not seen:", *_list(diagnosis.unseen)]
    else:
        lines.append("Nothing that the rules need is missing.")
    return "\n".join(lines) + "\n"


def span_of(history: History) -> str:
    """The number of samples, and the time from the first to the last."""
    if len(history) == 1:
        return "one sample"
    seconds = history[-1].time - history[0].time
    minutes, rest = divmod(round(seconds), 60)
    length = f"{minutes} min {rest} s" if minutes else f"{seconds:.3g} s"
    return f"{len(history)} samples in {length}"


def _finding(number: int, fault: PortFault) -> Iterator[str]:
    where = f"{fault.device} port {fault.port}" if fault.port else fault.device
    yield from _filled(f"{where}: {fault.cause.title} ({MAKES[fault.cause.health]})", f"{number}. ")
    yield from _part("at fault", (AT_FAULT[fault.side],))
    yield from _part("evidence", fault.evidence)
    yield from _part("likely", (fault.cause.likely,))
    yield from _part("against", fault.against)
    yield from _part("next", fault.next)
    yield from _part("runbook", (f"{RUNBOOKS}/{fault.cause.runbook}.md",))
    yield from _part("cause", (fault.cause.name,))


def _part(name: str, texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from _filled(text, f"   {name:<{NAME}}")
        name = ""


def _list(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from _filled(text, "  - ")


def _filled(text: str, begin: str = "") -> list[str]:
    """The text in lines of at most `COLUMNS`, indented like its first line."""
    return textwrap.wrap(
        text, COLUMNS, initial_indent=begin, subsequent_indent=" " * len(begin), break_on_hyphens=False
    )
