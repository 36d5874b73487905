"""`roce-exporter check`: what is wrong with a host, its settings, its health and its switches, and what was not seen.

Exit code 0: nothing found, and all that is needed was seen; 1: something is degraded or failed; 2: bad input; 3: nothing found, but
something that is needed was not seen.
"""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING

from roce_exporter.checks.finding import NotChecked, Report, Status, Topic, joined
from roce_exporter.checks.health.diagnosis import NO_DEVICE, diagnose
from roce_exporter.checks.health.traffic_causes import MISCONFIGURED
from roce_exporter.checks.report import JSON, WIDTH, document_text, text
from roce_exporter.checks.settings import audit, load_profile
from roce_exporter.checks.settings.auditor import settings_report
from roce_exporter.checks.setup.host_checkup import check_samples
from roce_exporter.checks.thresholds import load_thresholds
from roce_exporter.cli.check_host import sampled_host, sampled_prometheus
from roce_exporter.cli.check_setup import check_access
from roce_exporter.cli.options import OptionError
from roce_exporter.cli.output import print_text
from roce_exporter.view.host_view import View
from roce_exporter.words import duration

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from roce_exporter.checks.settings import Profile
    from roce_exporter.cli.check_host import SampledHost
    from roce_exporter.view.history import History

EXIT_CODES = {Status.OK: 0, Status.DEGRADED: 1, Status.FAILED: 1, Status.UNKNOWN: 3}

WIDEST = 120
"""Columns: longer lines are hard to read."""


async def check(options: argparse.Namespace) -> int:
    """Print what was found, and what was not seen; returns the exit code.

    Raises:
        OptionError: there is no such host or switch, no history, or a server cannot be queried.
        ProfileError: the profile cannot be used.
    """
    topics, names = chosen_topics(options)
    check_prometheus_options(options, topics)
    profile = load_profile(options.audit_profile)
    if Topic.SWITCHES in topics:
        from roce_exporter.cli.check_switches import check_switches  # noqa: PLC0415 - no other topic needs the modules of switches

        head = f"Switches of {options.switches_config}"
        reports = [await check_switches(options, names, profile)]
    else:
        head, reports = await _of_host(options, topics, profile)
    report = joined(reports)
    if options.format == JSON:
        print_text(document_text(report, head, time.time(), failed=options.failed))
    else:
        on_terminal = sys.stdout is not None and sys.stdout.isatty()
        width = min(shutil.get_terminal_size((WIDTH, 0)).columns, WIDEST)
        if not {Topic.SETTINGS, Topic.SWITCHES}.isdisjoint(topics):
            head += f"; profile {profile.name}"
        print_text(text(report, f"{head}.", width=width, failed=options.failed, colour=on_terminal))
    return EXIT_CODES[report.status]


def chosen_topics(options: argparse.Namespace) -> tuple[tuple[Topic, ...], tuple[str, ...]]:
    """The topics, and the names of switches. Without a word: all that the source can show.

    Raises:
        OptionError: a word is no topic, or topics cannot be checked together.
    """
    words = list(dict.fromkeys(options.words))
    topics = [Topic(words.pop(0))] if words and words[0] in tuple(Topic) else []
    while words and words[0] in tuple(Topic) and Topic.SWITCHES not in topics:
        topics.append(Topic(words.pop(0)))
    if Topic.SWITCHES in topics and len(topics) > 1:
        raise OptionError("check switches: give it alone, switches are another source than a host")
    if words and Topic.SWITCHES not in topics:
        raise OptionError(f"check {words[0]}: not one of {', '.join(Topic)}")
    if bool(options.switches_config) != (Topic.SWITCHES in topics):
        raise OptionError("check switches and --switches.config=FILE need each other")
    if topics:
        return tuple(one for one in Topic if one in topics), tuple(words)
    every = (
        (Topic.SETTINGS, Topic.HEALTH) if options.prometheus else (Topic.SETUP, Topic.SETTINGS, Topic.HEALTH)
    )
    return every, ()


def check_prometheus_options(options: argparse.Namespace, topics: Sequence[Topic]) -> None:
    """Refuse flags about Prometheus that need or contradict another one.

    Raises:
        OptionError: one line that names them.
    """
    names = [name for name in vars(options) if name.startswith("prometheus_") and getattr(options, name)]
    flags = [f"--prometheus.{name.removeprefix('prometheus_').replace('_', '-')}" for name in names]
    flags += ["--instance"] * bool(options.instance) + ["--http.config.file"] * bool(options.http_config_file)
    if not options.prometheus and (given := sorted(flags)):
        raise OptionError(f"{given[0]} needs --prometheus=URL")
    if bool(options.prometheus_username) != bool(options.prometheus_password_file):
        raise OptionError("--prometheus.username and --prometheus.password-file need each other")
    if bool(options.prometheus_cert_file) != bool(options.prometheus_key_file):
        raise OptionError("--prometheus.cert-file and --prometheus.key-file need each other")
    if not options.prometheus:
        return
    if Topic.SETUP in topics:
        if Topic.HEALTH in topics:
            raise OptionError(
                "check setup is about this host, and check health --prometheus=URL about a past: give one of them"
            )
        return
    host = {
        "--host.recording": options.host_recording,
        "--host.simulate": options.host_simulate,
        "--path.sysfs": options.path_sysfs != "/sys",
    }
    if chosen := [flag for flag, value in host.items() if value]:
        raise OptionError(f"--prometheus and {chosen[0]} name different hosts; give one of them")


async def _of_host(
    options: argparse.Namespace, topics: Sequence[Topic], profile: Profile
) -> tuple[str, list[Report]]:
    """Of setup, --prometheus is where this host should be scraped; of the others, where its history is."""
    if options.prometheus and Topic.SETUP not in topics:
        found = await sampled_prometheus(options)
    else:
        found = await sampled_host(options, over_time=Topic.HEALTH in topics)
    reports = []
    if Topic.SETUP in topics:
        devices = [one.device for one in found.devices or ()]
        items = [*check_samples(View(found.history[-1:]), devices), *await check_access(options)]
        reports.append(
            Report(
                tuple(one for one in items if not isinstance(one, NotChecked)),
                tuple(one for one in items if isinstance(one, NotChecked)),
            )
        )
    if Topic.SETTINGS in topics:
        reports.append(_settings(found, profile))
    if Topic.HEALTH in topics:
        limits = load_thresholds(options.thresholds_file) if options.thresholds_file else None
        health = diagnose(found.history, limits)
        if Topic.SETTINGS in topics:
            # The settings themselves say it.
            others = tuple(one for one in health.findings if one.check != MISCONFIGURED.name)
            health = health._replace(findings=others)
        reports.append(health)
    reports.append(Report((), found.missing))
    return f"{found.source}: {span_of(found.history)}", reports


def _settings(found: SampledHost, profile: Profile) -> Report:
    if found.devices is None:
        return settings_report(View(found.history))
    findings = audit(found.devices, profile)
    if findings:
        return Report(findings)
    what = "settings: no RoCE port has any that the profile sets" if found.devices else NO_DEVICE
    return Report((), (NotChecked(what, needed=True),))


def span_of(history: History) -> str:
    """The number of samples, and the time from the first to the last."""
    if len(history) == 1:
        return "one sample"
    return f"{len(history)} samples in {duration(history[-1].time - history[0].time)}"
