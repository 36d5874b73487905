"""The table of faults, `truth.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roce_exporter.checks.finding import Finding
from roce_exporter.checks.report import ACTS

TABLE = Path(__file__).with_name("truth.toml")


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault and the truth about it; the head of the file explains each key."""

    id: str
    title: str
    source: str
    place: str
    side: str
    cause: str
    owner: str
    next: str
    also: tuple[str, ...] = ()
    hidden: str = ""
    recording: str = ""
    profile: str = "auto"
    simulate: str = ""
    vendors: tuple[str, ...] = ()
    script: tuple[Mapping[str, Any], ...] = ()
    vendor: str = ""
    raised: Mapping[str, int] = field(default_factory=dict)
    replace: Mapping[str, str | list[str]] = field(default_factory=dict)
    module: Mapping[str, str] = field(default_factory=dict)
    hold: tuple[str, ...] = ()
    gone: str = ""

    @property
    def device(self) -> str:
        """The faulty RDMA device."""
        return self.place.partition("/")[0]

    @property
    def port(self) -> str:
        """Its faulty port."""
        return self.place.partition("/")[2]

    @property
    def causes(self) -> frozenset[str]:
        """The right names of the cause."""
        return frozenset((self.cause, *self.also))


def agrees(owner: str, finding: Finding) -> bool:
    """Whether the one who acts is the owner that the truth names: `host team`, `owner of the job`."""
    word = owner.removesuffix(" team").rpartition(" ")[2]
    return word in ACTS[finding.acts or finding.side]


def load_faults() -> tuple[Fault, ...]:
    """Every fault, in the order of the file."""
    return tuple(_fault({"id": name} | entry) for name, entry in tomllib.loads(TABLE.read_text()).items())


def _fault(entry: dict[str, Any]) -> Fault:
    side, _, rest = entry.pop("truth").partition(": ")
    cause, _, owner = rest.partition("; ")
    entry |= {"side": side, "cause": cause, "owner": owner}
    known = {"raised" if key == "raise" else key: value for key, value in entry.items()}
    return Fault(**{key: tuple(value) if isinstance(value, list) else value for key, value in known.items()})
