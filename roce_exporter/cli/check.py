"""`roce-exporter check`: what is wrong with a host, its settings, its health and its switches, and what was not seen.

Exit code 0: nothing found, and all that is needed was seen; 1: something is degraded or failed; 2: bad input; 3: nothing found, but
something that is needed was not seen.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from roce_exporter.checks import setup
from roce_exporter.checks.finding import Finding, NotChecked, Report, Topic, joined
from roce_exporter.checks.health.coverage import UNREAD
from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.checks.health.settings_rules import MISCONFIGURED
from roce_exporter.checks.report import EXIT_CODES, JSON, WIDTH, document, text
from roce_exporter.checks.settings import Profile, audit, load_profile
from roce_exporter.checks.settings.auditor import settings_report
from roce_exporter.checks.thresholds import load_thresholds, shipped_thresholds
from roce_exporter.cli import check_host
from roce_exporter.cli.options import OptionError, host_flags
from roce_exporter.cli.output import print_document, print_text, progress
from roce_exporter.cli.parts import open_kernel
from roce_exporter.errors import NO_DEVICE
from roce_exporter.host.kernel import Kernel
from roce_exporter.host.kernel.privileges import read_clock_state, read_privileges
from roce_exporter.net import NetError
from roce_exporter.net.prometheus_api import get
from roce_exporter.view.host_view import View
from roce_exporter.view.remote import parse_scrapes, read_metrics
from roce_exporter.words import duration, escaped

WIDEST = 120  # columns: longer lines are hard to read


async def check(options: argparse.Namespace) -> int:
    """Print what was found, and what was not seen; returns the exit code.

    Raises:
        OptionError: there is no such host or switch, no history, or a server cannot be queried.
        ProfileError: the profile cannot be used.
    """
    topics, names = chosen_topics(options)
    check_source(options, topics)
    profile = load_profile(options.audit_profile)
    if Topic.SWITCHES in topics:
        from roce_exporter.cli.check_switches import check_switches  # noqa: PLC0415 - no other topic needs the modules of switches

        head = f"Switches of {options.switches_config}"
        reports = [await check_switches(options, names, profile)]
    else:
        head, reports = await _of_host(options, topics, profile)
    if options.format != JSON and not {Topic.SETTINGS, Topic.SWITCHES}.isdisjoint(topics):
        head += f"; profile {profile.name}"
    return show(joined(reports), head, as_json=options.format == JSON, failed=options.failed)


def show(report: Report, head: str, *, as_json: bool, failed: bool = False) -> int:
    """Print a report; returns the exit code. `failed`: only what is wrong."""
    if as_json:
        print_document(document(report, head, time.time(), failed=failed))
    else:
        on_terminal = sys.stdout is not None and sys.stdout.isatty()
        width = min(shutil.get_terminal_size((WIDTH, 0)).columns, WIDEST)
        print_text(text(report, f"{head}.", width=width, failed=failed, colour=on_terminal))
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
    if Topic.FABRIC in topics and not options.prometheus:
        raise OptionError("check fabric needs --prometheus=URL: it is about all hosts")
    if words and Topic.SWITCHES not in topics:
        raise OptionError(f"check {words[0]}: not one of {', '.join(Topic)}")
    if bool(options.switches_config) != (Topic.SWITCHES in topics):
        lacks = "--switches.config=FILE" if Topic.SWITCHES in topics else "the topic: check switches"
        raise OptionError(f"check switches and --switches.config=FILE need each other: give {lacks}")
    if topics:
        return tuple(one for one in Topic if one in topics), tuple(words)
    if options.prometheus:
        return (Topic.SETTINGS, Topic.HEALTH, Topic.FABRIC), ()
    every = (Topic.SETTINGS, Topic.HEALTH) if options.target else (Topic.SETUP, Topic.SETTINGS, Topic.HEALTH)
    return every, ()


def check_source(options: argparse.Namespace, topics: Sequence[Topic]) -> None:
    """Refuse flags about Prometheus or an exporter that need or contradict another one.

    Raises:
        OptionError: one line that names them.
    """
    names = [name for name in vars(options) if name.startswith("prometheus_") and getattr(options, name)]
    if not options.prometheus and names:
        flag = min(names).removeprefix("prometheus_").replace("_", "-")
        raise OptionError(f"--prometheus.{flag} needs --prometheus=URL")
    if options.http_config_file and not (options.prometheus or options.target):
        raise OptionError("--http.config.file needs --prometheus=URL or --target=URL")
    if bool(options.prometheus_username) != bool(options.prometheus_password_file):
        raise OptionError("--prometheus.username and --prometheus.password-file need each other")
    if bool(options.prometheus_cert_file) != bool(options.prometheus_key_file):
        raise OptionError("--prometheus.cert-file and --prometheus.key-file need each other")
    source = "--prometheus" if options.prometheus else "--target"
    if not (options.prometheus or options.target):
        return
    if Topic.SETUP in topics:
        if Topic.HEALTH in topics:
            raise OptionError(
                f"check setup is about this host, and check health {source} about another host or a past: give one of them"
            )
        return
    if chosen := host_flags(options):
        raise OptionError(f"{source} and {chosen[0]} name different hosts; give one of them")


def _modules(options: argparse.Namespace) -> list[str] | None:
    """The modules of this host's kernel; None: a recorded or simulated host, or they cannot be read."""
    if options.host_recording or options.host_simulate:
        return None
    with contextlib.suppress(OSError):
        return [one.name for one in Path(options.path_sysfs, "module").iterdir()]
    return None


async def _of_host(
    options: argparse.Namespace, topics: Sequence[Topic], profile: Profile
) -> tuple[str, list[Report]]:
    """Of setup, --prometheus and --target are where this host should be scraped; of the others, where the host is."""
    reports = []
    # Before the host is sampled: an invalid file must not cost minutes.
    use_file = options.thresholds_file and {Topic.HEALTH, Topic.FABRIC}.intersection(topics)
    limits = load_thresholds(options.thresholds_file) if use_file else shipped_thresholds()
    if Topic.FABRIC in topics:
        from roce_exporter.cli.check_fabric import check_fabric  # noqa: PLC0415 - no other topic needs the modules of probes

        async with progress("reading the probes from Prometheus"):
            head, probers, report = await check_fabric(
                limits, options.since or check_host.SINCE, *await check_host.prometheus(options)
            )
        if topics == (Topic.FABRIC,):
            return head, [report]
        if probers > 1 and not (options.words or options.target):
            one_host = NotChecked("settings and health of one host: give --target")
            return head, [report, Report((), (one_host,))]
        if probers or options.words:
            reports.append(report)
    source = "Prometheus" if options.prometheus else "the target" if options.target else "this host"
    async with progress(f"reading {source}"):
        found = await _sampled(options, topics)
    if Topic.SETUP in topics:
        devices = [one.device for one in found.devices or ()]
        items = [
            *setup.check_samples(View(found.history[-1:]), devices, _modules(options)),
            *await check_access(options),
        ]
        reports.append(
            Report(
                tuple(one for one in items if not isinstance(one, NotChecked)),
                tuple(one for one in items if isinstance(one, NotChecked)),
            )
        )
    if Topic.SETTINGS in topics:
        reports.append(_settings(found, profile))
    if Topic.HEALTH in topics:
        reports = _said_once((*reports, diagnose(found.history, limits)), Topic.SETTINGS in topics)
    reports.append(Report((), found.missing))
    history = found.history
    span = f"{len(history)} samples in {duration(history[-1].time - history[0].time)}"
    return f"{found.source}: {span if len(history) > 1 else 'one sample'}", reports


def _said_once(reports: Sequence[Report], settings: bool) -> list[Report]:
    """Without what health repeats of settings that are checked, and without the links of setup whose loss health explains."""
    every = [one for report in reports for one in report.findings]
    repeated = {("link", one.device, one.port) for one in every if one.check == "link_down"}
    repeated |= {
        (one.check, one.device, one.port) for one in every if settings and one.check == MISCONFIGURED
    }
    return [
        one._replace(
            findings=tuple(f for f in one.findings if (f.check, f.device, f.port) not in repeated),
            not_checked=tuple(
                gap for gap in one.not_checked if not (settings and gap.what.startswith(UNREAD))
            ),
        )
        for one in reports
    ]


async def _sampled(options: argparse.Namespace, topics: Sequence[Topic]) -> check_host.SampledHost:
    over_time = Topic.HEALTH in topics
    if Topic.SETUP in topics or not (options.prometheus or options.target):
        return await check_host.sampled_host(options, over_time=over_time)
    if options.prometheus:
        return await check_host.sampled_prometheus(options)
    return await check_host.sampled_target(options, over_time=over_time)


def _settings(found: check_host.SampledHost, profile: Profile) -> Report:
    if found.devices is None:
        return settings_report(View(found.history))
    findings = audit(found.devices, profile)
    if findings:
        return Report(findings)
    what = (
        "settings: no RoCE port has any that the profile sets"
        if found.devices
        else f"everything: {NO_DEVICE}"
    )
    return Report((), (NotChecked(what, needed=True),))


PATIENCE = 30.0  # seconds that one request may take


async def check_access(options: argparse.Namespace) -> list[Finding | NotChecked]:
    """Privileges and clock of this host, and whether anything scrapes the host.

    Raises:
        OptionError: Prometheus cannot be queried.
    """
    here = not (options.host_recording or options.host_simulate)
    found: list[Finding | NotChecked] = [*setup.check_privileges(read_privileges())] if here else []
    if here:
        try:
            found.append(setup.check_clock(read_clock_state()))
        except OSError as error:
            found.append(setup.check_clock(None, error.strerror or str(error)))
    if options.prometheus:
        found += await _in_prometheus(options, open_kernel(options))
    elif here:
        found.append(await _local(options))
    return found


async def _local(options: argparse.Namespace) -> Finding | NotChecked:
    place = check_host.exporter_place(options)
    try:
        text = await read_metrics(place, await check_host.client_access(options), PATIENCE)
    except NetError as error:
        if place.server.tls:
            return NotChecked(f"scrapes: the exporter at {place.text}: {error}")
        return setup.check_local(None, place.text, time.time(), str(error))
    return setup.check_local(parse_scrapes(text), place.text, time.time())


async def _in_prometheus(options: argparse.Namespace, kernel: Kernel) -> tuple[Finding | NotChecked, ...]:
    name, server, access = await check_host.prometheus(options)
    ask = partial(get, server, access, seconds=PATIENCE)
    with check_host.asking(name):
        targets = await ask("targets", {"state": "active"})
        hostname = ""
        with contextlib.suppress(OSError):
            hostname = kernel.hostname()
        items = tuple(setup.check_targets(targets, options.target, hostname, server.text))
        if not (instance := setup.instance_of(targets, options.target, hostname)):
            return items
        query = {"query": f'roce_exporter_devices{{instance="{escaped(instance)}"}}'}
        found = await ask("query", query)
        return (*items, setup.check_samples_arrive(found, instance))
