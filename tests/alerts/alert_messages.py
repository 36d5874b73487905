"""The messages that an Alertmanager with a configuration of ours sends for alerts over time: routes, groups and inhibitions.

A model of it, because a week cannot be waited for; tests/alerts/test_week.py compares it with a real Alertmanager. A minute is a step, so that a group's wait
and interval are whole minutes. Repetitions and ends are no messages here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from alert_promtool import seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from week_rules import Fired, Labels

MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"(.*)"')


def matches(matchers: Iterable[str], labels: Mapping[str, str]) -> bool:
    """Whether labels have what these matchers require; a label that is missing is empty."""
    for one in matchers:
        name, sign, text = MATCHER.fullmatch(one).groups()  # type: ignore[union-attr]  # amtool has checked them
        value = labels.get(name, "")
        equal = re.fullmatch(text, value) is not None if "~" in sign else value == text
        if equal == sign.startswith("!"):
            return False
    return True


class Route(NamedTuple):
    """Where an alert goes, with what its place inherits."""

    receiver: str
    group_by: tuple[str, ...]
    wait: int
    """Minutes, as `every`."""
    every: int


def route_of(
    route: Mapping[str, Any], labels: Mapping[str, str], inherited: Mapping[str, Any] | None = None
) -> Route:
    """The route of an alert: of the first child that matches, and so on."""
    own = {
        **(inherited or {}),
        **{key: value for key, value in route.items() if key not in {"routes", "matchers"}},
    }
    for below in route.get("routes", ()):
        if matches(below.get("matchers", ()), labels):
            return route_of(below, labels, own)
    wait, every = (-(-seconds(own.get(key, "5m")) // 60) for key in ("group_wait", "group_interval"))
    return Route(own["receiver"], tuple(own.get("group_by", ())), wait, every)


def muted(
    labels: Mapping[str, str], active: Sequence[Mapping[str, str]], rules: Sequence[Mapping[str, Any]]
) -> bool:
    """Whether an active alert inhibits this one."""
    for rule in rules:
        if not matches(rule["target_matchers"], labels):
            continue
        own = matches(rule["source_matchers"], labels)
        for source in active:
            alike = all(source.get(name, "") == labels.get(name, "") for name in rule["equal"])
            if (
                alike
                and matches(rule["source_matchers"], source)
                and not (own and matches(rule["target_matchers"], source))
            ):
                return True
    return False


class Message(NamedTuple):
    """What a receiver is told: the alerts that fire, and those of them that it did not know."""

    minute: int
    receiver: str
    group: tuple[str, ...]
    alerts: frozenset[Labels]
    new: frozenset[Labels]


@dataclass(slots=True)
class _Group:
    due: int
    sent: frozenset[Labels] = field(default_factory=frozenset)


def messages(fired: Sequence[Fired], config: Mapping[str, Any], silent: str = "nobody") -> list[Message]:
    """The messages in their order; `silent` is the receiver that sends none."""
    rules, groups, found = config.get("inhibit_rules", ()), {}, []
    routes = {one.labels: route_of(config["route"], one.known) for one in fired}
    waiting = sorted(fired, key=lambda one: one.start, reverse=True)
    active: list[Fired] = []
    minute = 0
    while waiting or active:
        minute = minute + 1 if active else waiting[-1].start
        active = [one for one in active if one.end > minute]
        while waiting and waiting[-1].start <= minute:
            active.append(waiting.pop())
        known = [one.known for one in active]
        members: dict[tuple[Route, tuple[str, ...]], list[Labels]] = {}
        for one, labels in zip(active, known, strict=True):
            route = routes[one.labels]
            if route.receiver != silent:
                members.setdefault(
                    (route, tuple(labels.get(name, "") for name in route.group_by)), []
                ).append(one.labels)
        for key, listed in members.items():
            group = groups.setdefault(key, _Group(minute + key[0].wait))
            if minute >= group.due:
                group.due = minute + key[0].every
                firing = frozenset(one for one in listed if not muted(dict(one), known, rules))
                if firing - group.sent:
                    found.append(Message(minute, key[0].receiver, key[1], firing, firing - group.sent))
                if firing - group.sent or group.sent - {
                    *listed
                }:  # the end of one is told as well, and with it the rest
                    group.sent = firing
        for key in groups.keys() - members.keys():
            del groups[key]
    return found
