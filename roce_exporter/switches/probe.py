"""Queries to switches: who may be queried, once at a time, for how long, and how long answers are kept.

One round of queries per target is under way at any time, and everyone who wants that target gets its answer. Answers are
kept for a few seconds, so that a pair of Prometheus servers costs the switch one round per interval.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from random import uniform
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from roce_exporter.collect.workers import CallThread, InFlight, run_in_thread
from roce_exporter.errors import UserError
from roce_exporter.exposition import OneText, Renderer
from roce_exporter.net import NetError
from roce_exporter.net.login import Login, Refusals, hide, read_login
from roce_exporter.normalise.series import NO_SAMPLES, Samples, Value
from roce_exporter.switches import interpretation as i
from roce_exporter.switches.addresses import dial, discovery_of, find_routes, is_odd_address
from roce_exporter.switches.readings import (
    REACH,
    LoggedRequest,
    Module,
    ProbeReply,
    ProbeRequest,
    Repeat,
    SwitchReadings,
)
from roce_exporter.switches.systems import load_module
from roce_exporter.switches.targets import HOST, Network, Route, SwitchesFile, SwitchTarget

if TYPE_CHECKING:
    from roce_exporter.normalise.series_plan import Source
    from roce_exporter.switches.stream import SwitchStream

LOG = logging.getLogger(__name__)
MOST_TARGETS, MOST_SERIES = 4096, 300_000
"""Targets and series of all answers, from which those of service discovery are forgotten: a series takes some 900 bytes."""
PAUSE_AFTER, SHORTEST_PAUSE, LONGEST_PAUSE = 3, 15.0, 120.0
"""Rounds in a row that bring nothing, after which a switch is left alone, and for how many seconds: twice as many each time."""
READ_SECONDS = 60.0
"""To interpret the replies of one round."""
READ_AT_ONCE = 1
"""Switches whose replies are interpreted at once: one takes some 10 MiB meanwhile, and several are not faster."""
WHOLE_AT_ONCE, WHOLE_SHARE = 3, 0.5
"""Whole rounds at once of switches whose other rounds read values alone: the replies of each take some 2 MiB until they are interpreted. And the part
of its time for which a round waits for its place; it goes on without one."""
LOSS_SECONDS = 60.0
"""For which rounds are whole after one has lost values. What is away for longer is found by the next whole round of the module's own."""
_THREAD, _VALUES = CallThread(), CallThread()
"""For replies and for values: each thread has memory of its own from malloc, and keeps what one switch needed."""
STREAM = "stream"
"""The source of what the switch sends by itself, where the target wants it."""
READING_SECONDS = 0.25
"""What is left of a client's time for the replies to become an answer."""


@dataclass(slots=True)
class LineBudget:
    """How many lines of the log may be about the same."""

    most: int
    seconds: float
    until: float = 0.0
    taken: int = 0

    def may_log(self, what: str, now: float) -> bool:
        """Whether one more line is due. The last one says that more are not."""
        if now >= self.until:
            self.until, self.taken = now + self.seconds, 0
        self.taken += 1
        if self.taken == self.most:
            LOG.warning("no more lines about %s for %.0f s; /probe shows the faults", what, self.until - now)
        return self.taken < self.most


class UnknownTargetError(UserError):
    """A target that may not be queried: one line."""


class BadModuleError(UserError):
    """A module that the target cannot be queried with: one line."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of one round of queries."""

    target: SwitchTarget
    device: str
    """The switch's own name, or the target's until the switch has given one."""
    readings: SwitchReadings
    """Without values and facts, unless they were recorded: the samples have them."""
    logged: tuple[LoggedRequest, ...]
    """Queries and replies, if they were recorded."""
    success: bool
    """Whether anything of the switch could be used."""
    samples: tuple[Samples, ...]
    """Samples of the switch, then those of the probe."""
    facts: int
    """How many of the samples of the switch are facts; they are the first ones."""
    sources: tuple[Source, ...]
    """Where the others come from, if queries and replies were recorded."""
    login: Login
    """What the debug page hides."""
    renderer: Renderer
    """Renders these samples; keeps the templates of this target."""
    ended: float
    """By the clock of the event loop."""
    seconds: float


@dataclass(slots=True)
class _State:
    """What is kept of one target."""

    target: SwitchTarget
    module: Module
    interpreter: i.Interpreter
    networks: tuple[Network, ...] | None
    device: str
    stream: SwitchStream | None = None
    lookups: InFlight[str] = field(default_factory=lambda: InFlight(time.monotonic))
    renderer: Renderer = field(default_factory=partial(Renderer, lines=OneText))
    last: ProbeResult | None = None
    before: i.Earlier | None = None
    running: asyncio.Task[ProbeResult] | None = None
    faults: frozenset[str] = field(default_factory=frozenset)
    """The sources whose faults were logged."""
    lines: LineBudget = field(default_factory=partial(LineBudget, 6, 600.0))
    failed: int = 0
    """Rounds in a row that brought nothing."""
    is_asked: bool = False
    """Whether the last round came to the switch at all: no file, name or place here was missing."""
    paused_until: float = 0.0
    """When it is queried again."""
    is_reached: bool = False
    """Whether it answered the last time."""
    again: Repeat | None = None
    """Reads what the last whole round has read."""
    readable: int = 0
    """Values of the last whole round."""
    whole_until: float = 0.0
    """Rounds before this time are whole, by the clock of the event loop."""
    refusals: Refusals = field(default_factory=Refusals)
    route: Route | None = None
    """The address that answered last, of a name that has several."""

    def unless_lost(self, readable: int, again: Repeat | None, now: float) -> Repeat | None:
        """`again`; None for a while after values were lost, so that they are back as soon as the switch has them again."""
        if readable < self.readable:
            self.whole_until = now + LOSS_SECONDS
        self.readable = readable
        return again if now >= self.whole_until else None

    def count(self, answer: ProbeResult, *, record: bool) -> None:
        """Take note of whether it has answered. Only an answer that is kept can be shown while it is left alone."""
        self.is_reached, is_told = answer.success, self.refusals.line(answer.login, answer.ended)
        if answer.success or is_told or not self.is_asked:
            self.failed, self.paused_until = 0, 0.0
        elif not record:
            self.failed += 1
            if self.failed >= PAUSE_AFTER:
                pause = min(SHORTEST_PAUSE * 2 ** min(self.failed - PAUSE_AFTER, 9), LONGEST_PAUSE)
                self.paused_until = answer.ended + pause * uniform(0.8, 1.0)  # noqa: S311 - so that not all come back at once

    def end(self) -> None:
        """End its round and its stream."""
        for one in (self.running, self.stream):
            if one:
                one.cancel()


class Prober:
    """Probes the targets of one configuration file. All calls come from one event loop."""

    def __init__(self, file: SwitchesFile) -> None:
        """Load the modules of all targets.

        Raises:
            ModuleMissingError: a package that a module needs is not installed.
        """
        self._file = file
        self._room = asyncio.Semaphore(file.limits.targets_at_once)
        self._reading = asyncio.Semaphore(READ_AT_ONCE)
        self._whole = asyncio.Semaphore(WHOLE_AT_ONCE)
        self._states: OrderedDict[str, _State] = OrderedDict()
        self._lines = LineBudget(20, 60.0)
        """About targets of service discovery, which clients name."""
        for target in file.targets.values():
            self._state(target, None)
        for one in file.discovery:
            load_module(one.pattern.module)

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the targets of the configuration file."""
        return tuple(self._file.targets)

    @property
    def targets_at_once(self) -> int:
        """How many targets are queried at once. More simultaneous probes wait, within their deadlines."""
        return self._file.limits.targets_at_once

    def reload(self, file: SwitchesFile) -> None:
        """Take another configuration. What is kept of targets stays where their settings do, and rounds of the others end.

        Raises:
            UserError: a target cannot be used; nothing has changed then.
        """
        new = Prober(file)
        for name, state in self._states.items():
            own = new._states.get(name)
            if (own is None and state.networks is not None and file.discovery == self._file.discovery) or (
                own and own.target == state.target and state.networks is None
            ):
                new._states[name] = state
            else:
                if own and (own.target.host, own.target.ports) == (state.target.host, state.target.ports):
                    own.refusals = state.refusals  # what the switch said must not be forgotten
                state.end()
        if file.limits.targets_at_once == self.targets_at_once:
            new._room = self._room
        self._file, self._states, self._room = file, new._states, new._room

    async def close(self) -> None:
        """End all rounds of queries and streams."""
        running = [state.running for state in self._states.values() if state.running]
        for state in self._states.values():
            state.end()
        await asyncio.gather(*running, return_exceptions=True)

    def views(self) -> Iterator[tuple[ProbeResult, i.Earlier | None]]:
        """The last answer of every target, and the one before it."""
        yield from ((state.last, state.before) for state in self._states.values() if state.last)

    async def probe(self, name: str, module: str, wait: float, *, record: bool = False) -> ProbeResult:
        """An answer of this target that is at most `cache_seconds` old. Faults are in the answer.

        With `record` the switch is queried again, and the answer has queries and replies.

        Raises:
            UnknownTargetError: the name is neither in the file nor allowed by service discovery.
            BadModuleError: the module is not that of the target.
        """
        state = self._find(name, module)
        now = asyncio.get_running_loop().time()
        fresh = state.last and now - state.last.ended < self._file.limits.cache_seconds
        if state.last and not record and (fresh or now < state.paused_until):
            return _aged(state.last, now)
        if record and state.running:
            await asyncio.wait([state.running], timeout=wait)
        if state.running is None:
            # Whoever began the round, it has the target's own time: a client in a hurry only waits less.
            state.running = asyncio.create_task(self._round(state, now, record=record))
        running = state.running  # a client that disconnects must not end the round that others wait for
        done, _ = await asyncio.wait([running], timeout=wait)
        if done and not running.cancelled():
            return running.result()
        if state.last and not done and not record:
            return _aged(state.last, asyncio.get_running_loop().time())
        line = f"no answer within the {wait:g} s that the client waits"
        if done:
            line = "its settings were changed during this round; the next one has the new ones"
        return _answer(state, _Interpreted(SwitchReadings(faults={REACH: line})), now)  # it is not kept

    def _find(self, name: str, module: str) -> _State:
        known = self._file.targets.get(name)
        networks: tuple[Network, ...] | None = None
        if known is None:
            if not self._file.discovery or not HOST.fullmatch(name):
                raise UnknownTargetError(f"{name[:200]!r} is not a target of the configuration file")
            if is_odd_address(name):
                raise UnknownTargetError(
                    f"{name[:200]!r} is an address in another form; write it with four numbers"
                )
            found = discovery_of(name, self._file.discovery)
            if found is None:
                raise UnknownTargetError(f"{name!r} is a name; several entries of discovery need an address")
            known, networks = replace(found.pattern, name=name, host=name), found.networks
        if module and module != known.module:
            raise BadModuleError(
                f"{module[:200]!r} is not the module of {name}; leave it out: the configuration file says {known.module}"
            )
        return self._state(known, networks)

    def _state(self, target: SwitchTarget, networks: tuple[Network, ...] | None) -> _State:
        if target.name not in self._states:
            loaded = load_module(target.module)
            stream = loaded.stream() if target.stream and loaded.stream else None
            self._states[target.name] = _State(
                target, loaded, i.Interpreter(loaded.dialect), networks, target.name, stream
            )
            self._forget_oldest()
        self._states.move_to_end(target.name)
        return self._states[target.name]

    def _forget_oldest(self) -> None:
        """Forget targets of service discovery: there may be any number of them, of any size."""
        sizes = {name: len(one.last.samples[0].series) for name, one in self._states.items() if one.last}
        kept = sum(sizes.values())
        for name, state in list(self._states.items()):
            if len(self._states) <= MOST_TARGETS and kept <= MOST_SERIES:
                return
            if not state.running and state.networks is not None:
                kept -= sizes.get(name, 0)
                state.end()
                del self._states[name]

    async def _round(self, state: _State, begin: float, *, record: bool) -> ProbeResult:
        with ExitStack() as places:
            places.callback(setattr, state, "running", None)
            return await self._answered(state, begin, places, record=record)

    async def _answered(self, state: _State, begin: float, places: ExitStack, *, record: bool) -> ProbeResult:
        replies, login = await self._query(state, places, record=record)
        if isinstance(replies, list):
            assert state.last is not None  # noqa: S101 - for the type checker
            again, many = partial(state.interpreter.again, replies), len(replies) > i.MANY_VALUES
            samples = await run_in_thread(again, READ_SECONDS, _VALUES) if many else again()
            ended, last = asyncio.get_running_loop().time(), state.last
            both = samples, i.with_times(last.samples[1], ended - begin)
            state.before = i.earlier(last.ended, last.samples[0])
            state.last = replace(last, samples=both, ended=ended, seconds=ended - begin)
            return state.last
        # In a thread, so that other targets and clients are served while a large switch is read.
        state.again = None
        async with self._reading:
            work = partial(_interpret, state, replies, self._file.limits.series, record=record)
            found = await run_in_thread(work, READ_SECONDS, _THREAD)
        readings, state.device = found.readings, found.readings.name or state.device
        state.again = state.unless_lost(found.readable, found.again, begin)
        answer = _answer(state, found, begin, replies.logged, login)
        state.count(answer, record=record)
        self._log_faults(state, readings, login)
        if record:
            return answer  # not kept: it has every reply, and rates need answers that are an interval apart
        answer = replace(answer, readings=replace(readings, readings=(), facts=()))
        if state.last:
            state.before = i.earlier(state.last.ended, state.last.samples[0])
        state.last = answer
        self._forget_oldest()
        # A large switch has a million objects: they are freed in steps, between which the event loop goes on.
        for one in ([found], [readings], [replies]):
            _THREAD.submit(one.clear)
        del found, readings, replies, work, one
        return answer

    async def _query(
        self, state: _State, places: ExitStack, *, record: bool
    ) -> tuple[ProbeReply | list[Value], Login]:
        """The replies; or all values, in the order of the readings of the last whole round, if nothing else has changed."""
        login, target, clock = Login(), state.target, asyncio.get_running_loop().time
        state.is_asked = False
        room = self._room  # a reload may have another one
        deadline = clock() + max(target.timeout - READING_SECONDS, READING_SECONDS)
        try:
            async with asyncio.timeout_at(deadline):
                login = await read_login(target.basic_auth)
                routes = await find_routes(target, state.networks, state.lookups)
            if line := state.refusals.line(login, clock()):
                return ProbeReply(faults={REACH: line}), login
            state.is_asked = True
            if not state.is_reached or state.route not in routes:
                state.route = await dial(target, routes)
        except NetError as error:
            return ProbeReply(faults={REACH: str(error)}), login
        except TimeoutError:
            return ProbeReply(faults={REACH: f"{target.host}: the name was not resolved in time"}), login
        begin = clock()
        try:
            # Waiting for a place is not the target's time; all else is.
            async with asyncio.timeout(target.timeout):
                await room.acquire()
        except TimeoutError:
            state.is_asked = False
            line = "too many other switches are being queried; raise limits.targets_at_once"
            return ProbeReply(faults={REACH: line}), login
        try:
            held = state.stream.held(clock()) if state.stream and not record else {}
            deadline += clock() - begin
            request = ProbeRequest(target, state.route, login, deadline, record, held=held)
            values = await state.again.read(request) if state.again and not record else None
            reply = await self._whole_reply(state, request, places) if values is None else values
            if state.stream and isinstance(reply, ProbeReply) and not record:
                if reply.replies:
                    state.stream.after(request, reply, clock())
                reply = replace(reply, faults={**reply.faults, **state.stream.faults()})
            state.refusals.remember(login, request.gate, clock())
        except NetError as error:
            return ProbeReply(faults={REACH: str(error)}), login
        else:
            return reply, login
        finally:
            room.release()

    async def _whole_reply(self, state: _State, request: ProbeRequest, places: ExitStack) -> ProbeReply:
        if state.module.is_repeated:
            left = request.deadline - asyncio.get_running_loop().time()
            with suppress(TimeoutError):
                async with asyncio.timeout(left * WHOLE_SHARE):
                    await self._whole.acquire()
                    places.callback(self._whole.release)
        return await state.module.query(request)

    def _log_faults(self, state: _State, readings: SwitchReadings, login: Login) -> None:
        """One line when sources begin to fail, and one when they work again."""
        faults = {source: hide(line, login) for source, line in sorted(readings.faults.items())}
        failed = [f"{source}: {line}" for source, line in faults.items() if source not in state.faults]
        again = sorted(state.faults - readings.faults.keys())
        lines, what = state.lines, f"target {state.target.name}"
        if state.networks is not None:
            lines, what = self._lines, "targets of service discovery"
        if not (failed or again) or not lines.may_log(what, asyncio.get_running_loop().time()):
            return  # what is not logged is logged later, unless it has changed back
        state.faults = frozenset(readings.faults)
        if failed:
            LOG.warning("target %s: %s", state.target.name, "; ".join(failed))
        if again:
            LOG.info("target %s: %s works again", state.target.name, ", ".join(again))


class _Interpreted(NamedTuple):
    """What replies say. All that takes time with a thousand ports is computed here, in a thread."""

    readings: SwitchReadings
    samples: Samples = NO_SAMPLES
    sources: tuple[Source, ...] = ()
    again: Repeat | None = None
    readable: int = 0
    unreadable: Mapping[str, int] = MappingProxyType({})


def _interpret(state: _State, replies: ProbeReply, most: int, *, record: bool) -> _Interpreted:
    readings = SwitchReadings() if REACH in replies.faults else state.module.read(replies, state.target)
    readings = i.within_limits(readings, most)
    missing = readings.missing | {(source, "unsupported") for source in replies.absent}
    readings = replace(readings, faults={**readings.faults, **replies.faults}, missing=missing)
    readings = i.with_links(readings, state.target)
    near = (*readings.readings, *i.neighbor_readings(readings), *i.intended_readings(readings, state.target))
    held = (STREAM,) if state.stream and state.stream.is_begun else ()
    readings = replace(readings, readings=near, sources=(*readings.sources, *held))
    samples = state.interpreter.samples(readings.name or state.device, readings)
    sources = state.interpreter.sources(readings) if record else ()
    again = replies.again(readings) if replies.again and near and not record else None
    readable = sum(value is not None for value in samples.values)
    return _Interpreted(readings, samples, sources, again, readable, i.unreadable_values(readings))


def _aged(answer: ProbeResult, now: float) -> ProbeResult:
    state, own = answer.samples
    return replace(answer, samples=(state, i.with_times(own, answer.seconds, now - answer.ended)))


def _answer(
    state: _State,
    found: _Interpreted,
    begin: float,
    logged: tuple[LoggedRequest, ...] = (),
    login: Login = Login(),  # noqa: B008 - frozen
) -> ProbeResult:
    ended, readings, samples = asyncio.get_running_loop().time(), found.readings, found.samples
    refused = state.refusals.is_refused(login, ended)
    own = i.probe_samples(state.device, readings, ended - begin, found.unreadable, refused=refused)
    if state.last:
        own = state.last.samples[1].replace(zip(own.series, own.values, strict=True))
    return ProbeResult(
        state.target,
        state.device,
        readings,
        logged,
        i.is_success(readings),
        (samples, own),
        len(state.interpreter.facts) if samples.series else 0,
        found.sources,
        login,
        state.renderer,
        ended,
        ended - begin,
    )
