"""The daemon's verdict: every 15 seconds, between scrapes, over the exporter's own samples.

A round takes the samples of the last collection, and collects by itself only if no scrape did so since the last round. The rules run in
a worker thread (`collect/workers.py`), so that neither they nor a fault in them delays a scrape.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from roce_exporter.catalog.named import HEALTH_THRESHOLDS, PORT_HEALTH, PORT_HEALTH_REASON
from roce_exporter.checks.finding import Report, Status
from roce_exporter.checks.health import HEALTH
from roce_exporter.checks.health.counter_rules import ROWS_OF_COUNTERS
from roce_exporter.checks.health.coverage import COVERAGE, DEVICE_COVERAGE
from roce_exporter.checks.health.diagnosis import diagnose
from roce_exporter.checks.health.link_rules import MODULE_LIMITS
from roce_exporter.checks.health.port_health import (
    HostHealth,
    described,
    findings_document,
    health_document,
    judge,
    not_judged,
)
from roce_exporter.collect.rounds import Calls, ExporterPart, Rounds, every
from roce_exporter.model import SourceState
from roce_exporter.normalise.series import Samples, Series, Value
from roce_exporter.view.host_view import History, kept, timed_samples

LOG = logging.getLogger(__name__)

_ROWS = """
buffer_threshold_passed_total cnp_handled_total config_check_unreadable config_notification_point_enabled dcqcn_parameter device_info devlink_health_errors_total exporter_metric_set_info
exporter_missing_facts exporter_read_errors_total exporter_sampler_stuck exporter_source_up exporter_unreadable_values gid_info
global_pause_receive_frames_total global_pause_receive_seconds_total global_pause_receive_xoff_frames_total
global_pause_receive_xon_frames_total global_pause_transmit_frames_total global_pause_transmit_seconds_total
global_pause_transmit_xoff_frames_total global_pause_transmit_xon_frames_total kernel_log_events_total kernel_log_readable
link_extended_state link_extended_substate link_lanes link_speed_bytes_per_second link_up netdev_carrier_changes_total netdev_carrier_up_total netdev_info
netdev_set_up owner_connections owner_transport_ack_timeouts_total owner_transport_adaptive_retransmits_total
owner_transport_retries_exceeded_total pcie_correctable_errors_total pcie_inbound_congestions_total
pcie_link_speed_max_transfers_per_second pcie_link_speed_transfers_per_second pcie_link_width_max_lanes pcie_outbound_congested
pcie_outbound_congestions_total pcie_read_stalled_seconds_total pfc_enabled pfc_receive_all_frames_total pfc_receive_transitions_total
pfc_receive_xon_frames_total pfc_storm_active pfc_storm_hint pfc_transmit_all_frames_total pfc_transmit_xon_frames_total
mac_symbol_errors_total phy_line_bytes_total phy_receive_stomped_crc_errors_total phy_symbol_error_packets_total port_info port_mtu_bytes port_netdev_info port_receive_packets_total port_set_up
port_speed_bytes_per_second port_transmit_bytes_total port_transmit_packets_total priority_receive_bytes_total
priority_receive_packets_total priority_transmit_bytes_total priority_transmit_packets_total probe_pair_lost_total probe_pair_sent_total
probe_port_info resource_cq resource_cq_limit resource_mr resource_mr_limit resource_qp resource_qp_limit switch_lldp_neighbor_info
temperature_celsius temperature_critical_celsius transport_adaptive_retransmits_total transport_duplicate_requests_total
transport_implied_naks_total transport_requester_completion_errors_total transport_requester_flushed_completions_total
transport_retransmitted_packets_total transport_rnr_naks_sent_total transport_rnr_retries_exceeded_total transport_slow_restart_cnps_total
transport_read_request_errors_total transport_write_request_errors_total wire_bad_icrc_packets_total wire_cnps_total wire_outside_lossless_packets_total wire_packets_total wire_retransmitted_packets_total
"""
"""What rules read in code besides the rows of their tables, after `roce_`; a test compares the list with the rules."""

KEPT = frozenset(
    {
        *(*ROWS_OF_COUNTERS, *(f"roce_{name}" for name in _ROWS.split())),
        *(name for one in (*COVERAGE, *DEVICE_COVERAGE) for name in one.rows),
        *(name for one in MODULE_LIMITS for name in (one.value, one.alarm)),
    }
)
"""The rows that rules read: the daemon keeps an hour of these, and of no others."""

INTERVAL = 15.0
"""Seconds between two rounds."""

TIMEOUT = 60.0
"""Seconds after which a round is given up."""


class HealthWatch(ExporterPart):
    """Judges the ports of a host again and again. Used from one event loop."""

    name = "health_watch"

    def __init__(
        self,
        observe: Callable[[], Awaitable[object]],
        clock: Callable[[], float],
        wall: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rules: Callable[[History], Report] | None = None,
        *,
        limits: str = "",
    ) -> None:
        """`observe` makes a collection, which calls `note`; `clock` returns monotonic seconds, `wall` Unix time; `limits` is the sum of those of the rules.

        The history is in Unix time as of the start: a clock that is set, forward or back, neither ends nor prolongs a reason.
        """
        self._observe = observe
        self._clock = clock
        self._wall = wall
        self._apart = wall() - clock()
        self._sleep = sleep
        self._rules = rules or partial(diagnose, past=False)
        self._limits = limits
        self._call = Calls(TIMEOUT)
        self._rounds = Rounds(HEALTH, clock)
        self._history: History = ()
        self._fresh: tuple[float, tuple[Samples, ...]] | None = None
        """The newest collection that no round has judged, and its time."""
        self._ports: HostHealth = {}
        self._report = Report(())
        self._at = 0.0
        """The time of the samples that were judged: what holds is decided for this time only."""
        self._judged: float | None = None
        """The time at which the last round ended."""

    def note(self, samples: tuple[Samples, ...]) -> None:
        """The samples of a collection that has just ended, which the next round judges."""
        self._fresh = (self._time(), samples)

    async def run(self) -> None:
        """Judge once per `INTERVAL`; runs until cancelled."""
        await every(INTERVAL, self.judge, self._clock, self._sleep)

    async def read_once(self) -> None:
        """One round, whose result is printed anyway and so is not logged."""
        await self.judge(quiet=True)

    async def judge(self, *, quiet: bool = False) -> None:
        """One round. Its failure is logged, counted, and makes every port UNKNOWN that has no reason."""
        if not await self._rounds.read(self._judge(quiet=quiet), TIMEOUT):
            self._at = self._time()
            self._ports = not_judged(self._ports, self._at)
        self._judged = self._time()
        self._rounds.samples = self._rounds.samples.replace(_samples(self._ports, self._at, self._limits))

    def samples(self) -> tuple[Samples]:
        """The verdicts of the last round."""
        return (self._rounds.samples,)

    def states(self) -> tuple[SourceState]:
        """The state of the last round."""
        return (self._rounds.state,)

    def document(self, version: int = 1) -> dict[str, Any]:
        """The document at `/health.json`."""
        # The clock may have been set since the start; what it was slewed by is not worth a change of all times.
        set_by = round(self._wall() - self._time())
        ports = {key: held.shifted(set_by) for key, held in self._ports.items()} if set_by else self._ports
        at, judged = self._at + set_by, None if self._judged is None else self._judged + set_by
        if version == 1:
            return health_document(ports, self._report, at, judged, INTERVAL)
        return findings_document(ports, self._report, at, judged, INTERVAL)

    def _time(self) -> float:
        return self._clock() + self._apart

    async def _judge(self, *, quiet: bool) -> bool:
        if self._fresh is None:
            await self._observe()
        if self._fresh is None:
            return True
        (time, samples), self._fresh = self._fresh, None
        history, ports, diagnosis = await self._call(partial(self._apply, samples, time))
        for key, held in sorted(ports.items()):
            if not quiet and (key not in self._ports or held.health != self._ports[key].health):
                level = logging.WARNING if held.health >= Status.DEGRADED else logging.INFO
                LOG.log(level, "port %s/%s is %s", *key, described(held, time))
        self._history, self._ports, self._at = history, ports, time
        self._report = diagnosis
        return True

    def _apply(self, samples: tuple[Samples, ...], time: float) -> tuple[History, HostHealth, Report]:
        """The verdict on the history with these samples. Changes nothing: a round that was given up must leave no trace."""
        history = kept(self._history, timed_samples(samples, time, KEPT))
        diagnosis = self._rules(history)
        return history, judge(self._ports, history, diagnosis), diagnosis


def _samples(ports: HostHealth, at: float, limits: str) -> Iterator[tuple[Series, Value]]:
    if limits:
        yield Series(HEALTH_THRESHOLDS, (limits,)), 1
    for (device, port), held in sorted(ports.items()):
        yield Series(PORT_HEALTH, (device, port)), int(held.health)
        for reason in sorted(held.holding(at), key=lambda one: one.finding.check):
            yield (Series(PORT_HEALTH_REASON, (device, port, reason.finding.check)), int(reason.status))
        for name in held.unknown:
            yield Series(PORT_HEALTH_REASON, (device, port, name)), 0
