"""Whether the samples of this host arrive anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roce_exporter.checks.finding import Finding, NotChecked, Status, Topic
from roce_exporter.net import NetError
from roce_exporter.words import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roce_exporter.net.local_exporter import LocalScrapes

TARGETS_HELP = "add this host to Prometheus' scrape targets (deploy/prometheus)"

SHOWN = 200
"""Characters of Prometheus' own error that are shown."""


def check_local(found: LocalScrapes | None, url: str, now: float, error: str = "") -> Finding:
    """Whether the exporter of this host responds, and has been scraped; `now` in seconds since 1970."""
    if found is None:
        text = f"No exporter responds at {url} ({error})."
        return _scraping(
            Status.DEGRADED,
            text,
            "`systemctl status roce-exporter`; --exporter=URL if it listens elsewhere",
        )
    age = now - found.start if found.start else 0.0
    since = f" since it started {duration(age)} ago" if age > 0 else " since it started"
    if not found.scrapes:
        return _scraping(
            Status.DEGRADED,
            f"The exporter at {url} has not been scraped{since}.",
            TARGETS_HELP,
        )
    every = f", one every {duration(age / found.scrapes)}" if age > 0 else ""
    return _scraping(
        Status.OK,
        f"The exporter at {url} has been scraped {found.scrapes} times{since}{every}.",
    )


def check_targets(data: object, instance: str, hostname: str, url: str) -> Iterator[Finding | NotChecked]:
    """What the reply of `/api/v1/targets` says of this host: its targets with this instance, or else with its name.

    Raises:
        NetError: it is not such a reply.
    """
    active = data.get("activeTargets") if isinstance(data, dict) else None
    if not isinstance(active, list):
        raise NetError("the reply is not a list of targets")
    mine = [one for one in active if isinstance(one, dict) and _is_mine(one, instance, hostname)]
    for target in mine:
        yield _target(target, url)
    if not mine:
        wanted = f"the instance {instance!a}" if instance else f"the name {hostname!a}"
        text = f"Prometheus at {url} has {len(active)} targets, none with {wanted}."
        yield _scraping(Status.DEGRADED, text, f"{TARGETS_HELP}; --instance if it has another name there")


def check_samples_arrive(data: object, instance: str) -> Finding:
    """Whether the query for `roce_exporter_devices` of an instance has a result."""
    result = data.get("result") if isinstance(data, dict) else None
    if result:
        return _scraping(Status.OK, f"Prometheus has samples of {instance}.")
    return _scraping(
        Status.DEGRADED,
        f"Prometheus scrapes {instance}, and has no roce_exporter_devices of it.",
        "check metric_relabel_configs, and that this target is roce_exporter",
    )


def instance_of(data: object, instance: str, hostname: str) -> str:
    """The label `instance` of the first target of this host that is up; empty without one."""
    active = data.get("activeTargets", []) if isinstance(data, dict) else []
    for target in active:
        if isinstance(target, dict) and target.get("health") == "up" and _is_mine(target, instance, hostname):
            return _label(target, "instance")
    return ""


def _is_mine(target: dict[str, object], instance: str, hostname: str) -> bool:
    found = _label(target, "instance")
    if instance:
        return found == instance
    host = found.rpartition(":")[0] or found
    return (
        bool(hostname)
        and host.partition(".")[0] == hostname.partition(".")[0]
        and "roce" in str(target).lower()
    )


def _label(target: dict[str, object], name: str) -> str:
    labels = target.get("labels")
    value = labels.get(name) if isinstance(labels, dict) else None
    return value if isinstance(value, str) else ""


def _target(target: dict[str, object], url: str) -> Finding | NotChecked:
    where = f"{_label(target, 'instance')} (job {_label(target, 'job')})"
    if target.get("health") == "up":
        return _scraping(
            Status.OK,
            f"Prometheus at {url} scrapes {where}, last at {target.get('lastScrape')}.",
        )
    if target.get("health") == "unknown":
        return NotChecked(f"scrapes: Prometheus at {url} has not scraped {where} yet", needed=True)
    error = ascii(str(target.get("lastError", "")))[1:-1][:SHOWN]
    text = f"Prometheus at {url} cannot scrape {where}: {error}."
    return _scraping(
        Status.DEGRADED,
        text,
        "`systemctl status roce-exporter`; firewall and address of the target",
    )


def _scraping(status: Status, title: str, fix: str = "") -> Finding:
    return Finding(Topic.SETUP, "scraping", title.removesuffix("."), status, fix=(fix,) if fix else ())
