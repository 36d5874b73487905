"""Recording rules as values, and the few forms of PromQL that they need."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from roce_exporter.migrate.naming import Pairs

TARGET = "cluster, job, instance"
"""The labels of a target. `cluster` is empty where there is one cluster."""


class Recording(NamedTuple):
    """One recording rule. A name has one meaning, but may have several rules that differ in their labels."""

    record: str
    expr: str
    labels: Pairs = ()


class Group(NamedTuple):
    """Rules that are evaluated one after another, and a comment for the reader."""

    name: str
    comment: str
    rules: tuple[Recording, ...]


def selector(name: str, *matchers: str) -> str:
    """`name{a="b"}`."""
    return f"{name}{{{','.join(matchers)}}}" if matchers else name


def equal(pairs: Pairs) -> list[str]:
    """The matchers of these values."""
    return [f'{label}="{value}"' for label, value in pairs]


def replaced(expr: str, target: str, source: str, value: str = "$1", pattern: str = "(.*)") -> str:
    """The series with the label `target` made from the label `source`."""
    return f'label_replace({expr}, "{target}", "{value}", "{source}", "{pattern}")'


def without(expr: str, *labels: str) -> str:
    """The series without these labels. Two that become equal have the same value, since they are the same counter."""
    return f"max without ({', '.join(labels)}) ({expr})" if labels else expr


def scaled(expr: str, times: int, per: int) -> str:
    """The values x `times` / `per`."""
    return expr + (f" * {times}" if times != 1 else "") + (f" / {per}" if per != 1 else "")
