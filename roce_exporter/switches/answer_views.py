"""The answers that the prober keeps, as the pause tree and the audit read them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from roce_exporter.net.login import hide
from roce_exporter.switches.probe import REACH
from roce_exporter.switches.switch_view import SwitchView

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from roce_exporter.switches.probe import Answer

NOT_PROBED = "was not probed yet: no Prometheus has requested /probe for it"


def answer_views(
    answers: Iterable[tuple[Answer, Answer | None]], targets: Collection[str], now: float
) -> tuple[SwitchView, ...]:
    """The view of every target of the configuration file, and of those from service discovery that were probed.

    `now` is by the clock of the event loop. If a target was probed with two modules, its newest answer counts.
    """
    newest: dict[str, tuple[Answer, Answer | None]] = {}
    for last, before in answers:
        known = newest.get(last.target.name)
        if known is None or known[0].ended < last.ended:
            newest[last.target.name] = last, before
    found: dict[str, SwitchView] = {}
    for target, (last, before) in newest.items():
        view = _view(last, before, now)
        # Two switches with one name would otherwise be taken for one.
        device = view.device if view.device not in found else f"{view.device} ({target})"
        found[device] = replace(view, device=device)
    away = (SwitchView(name, faults={"": NOT_PROBED}) for name in targets if name not in newest)
    return (*found.values(), *(view for view in away if view.device not in found))


def _view(last: Answer, before: Answer | None, now: float) -> SwitchView:
    older = None if before is None or before.ended >= last.ended else before
    faults = {
        "" if source == REACH else source: hide(line, last.login)
        for source, line in last.readings.faults.items()
    }
    return SwitchView(
        last.device,
        last.samples[0],
        older.samples[0] if older else None,
        last.ended - older.ended if older else 0.0,
        faults,
        max(0.0, now - last.ended),
    )
