"""One gNMI subscription of the mode STREAM per switch: what changes is sent as it changes, and a probe reads it from memory.

A stream begins after a round that has queried everything, with the sources that the switch has. While it is held, rounds query the
other sources only. One that breaks, is silent or is refused is the fault of the source `stream`: the next round queries everything
and begins it again, after a pause that grows. Each is ended after some minutes by such a round too, which finds what did not exist before,
and what the switch has deleted without a word; and none outlives the probes that read it. Tables of SONiC, of which that is usual, are
queried once a minute meanwhile, and after each message that does not say which row has which values now.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, starmap
from sys import getsizeof
from typing import TYPE_CHECKING, Any

from roce_exporter.net import NetError
from roce_exporter.net.gnmi_messages import Leaf, LeafReader, Path, plain_name
from roce_exporter.net.json_reply import decode_aside
from roce_exporter.switches.gnmi import GnmiClient
from roce_exporter.switches.readings import ProbeReply, ProbeRequest, StreamPlan

if TYPE_CHECKING:
    from roce_exporter.switches.targets import FastSamples

Names = tuple[str, ...]

LOG = logging.getLogger(__name__)

RENEW_SECONDS = 300.0
"""After which a round queries everything, and the stream begins again."""
TABLE_SECONDS = 60.0
"""After which a round queries a table, and takes what is gone out of what the stream has sent."""
UNSYNCED_SECONDS = 60.0
UNREAD_SECONDS = 2 * RENEW_SECONDS
"""After which a stream ends that no probe has read."""
LATE_SAMPLES, GRACE_SECONDS = 3, 10.0
"""A source is silent after this number of samples that did not come, and these seconds."""
SLOW_SECONDS = 10.0
"""Between two samples of what is not sampled fast."""
ANY_PORT = re.compile(r"(?:Ethernet)?\*")
"""In a path: `[name=*]`, and `Ethernet*` of SONiC."""
SHORTEST_PAUSE, LONGEST_PAUSE = 15.0, 600.0
"""Seconds before a stream is tried again after a fault."""
AT_ONCE = 1000
"""Leaves that are compared or taken between two turns of the event loop: some milliseconds."""
MOST_LEAVES, MOST_NAMES, MOST_COMPARED, MOST_BYTES = 300_000, 4096, 2_000_000, 32 << 20
"""What is kept of a switch at most, and compared for the deletions of a message, and the paths without keys whose source is remembered: a switch may invent names without end. Bytes
are those of values as text, counted when twice as many have arrived."""


class SwitchStream:
    """The stream of one switch, from which rounds take what they would query."""

    def __init__(self, plan_of: Callable[[ProbeReply], StreamPlan | None]) -> None:
        """`plan_of` says what to subscribe to after a round that has queried everything; None: nothing."""
        self.is_begun, self.fault = False, ""
        self._plan_of = plan_of
        self._task: asyncio.Task[None] | None = None
        self._store: LeafStore | None = None
        """What has been sent; None until the switch has sent everything once."""
        self._begun = self._read = self._pause = self._next = 0.0

    def held(self, now: float) -> Mapping[str, Any]:
        """By source what was sent last, as the reply of a round has it; nothing where a round is to query everything."""
        self._read = now
        if self._task and self._task.done() and (defect := self._task.exception()):
            # It ends the stream and nothing else: this round and those of the pause query everything.
            self.cancel()
            LOG.error("a defect has ended the stream of a switch", exc_info=defect)
            self._fail(f"a defect of the exporter: {type(defect).__name__}", now)
        return self._store.held(now) if self._store and now - self._begun < RENEW_SECONDS else {}

    def after(self, request: ProbeRequest, reply: ProbeReply, now: float) -> None:
        """Begin, or begin again, with the sources of a round that has queried everything; take the tables that another one has queried."""
        if request.held and self._store:
            self._store.renew(reply.replies, now)
        is_begun = self._task is not None and not self._task.done() and now - self._begun < RENEW_SECONDS
        if is_begun and not self._store and now - self._begun > UNSYNCED_SECONDS:
            self.fault = f"the switch has not sent everything once in {now - self._begun:.0f} s"
        if request.held or is_begun or now < self._next:
            return
        plan = sampled(self._plan_of(reply), request.target.samples)
        if plan and plan.paths:
            self.cancel()
            self.is_begun, self._begun, self._read = True, now, now
            self._task = asyncio.create_task(self._hold(request, plan))

    def faults(self) -> Mapping[str, str]:
        """Why it ended, or was refused, by the name of its source; empty while it works."""
        return {"stream": self.fault} if self.fault else {}

    def cancel(self) -> None:
        """End it."""
        if self._task:
            self._task.cancel()
        self._task = self._store = None

    async def _hold(self, request: ProbeRequest, plan: StreamPlan) -> None:
        clock, store, turn = asyncio.get_running_loop().time, LeafStore(plan), asyncio.Lock()

        async def take(message: LeafReader, is_synced: bool) -> None:
            async with turn:  # of two databases
                await store.add(message, clock())
            if is_synced:
                self._store, self.fault, self._pause = store, "", 0.0
            if clock() - self._read > UNREAD_SECONDS:
                raise NetError("no probe has read it")

        try:
            async with GnmiClient(request) as client:
                await client.stream(plan, take)
        except NetError as error:
            if self._task is not asyncio.current_task() or clock() - self._read > UNREAD_SECONDS:
                return
            self._store = None
            self._fail(str(error), clock())

    def _fail(self, fault: str, now: float) -> None:
        self.fault = fault
        self._pause = min(max(SHORTEST_PAUSE, 2 * self._pause), LONGEST_PAUSE)
        self._next = now + self._pause


def sampled(plan: StreamPlan | None, fast: FastSamples) -> StreamPlan | None:
    """The plan with the fast samples of these ports as often as is wanted, and those of all others each ten seconds."""
    if plan is None:
        return None

    def ways(path: str, seconds: float) -> Iterator[tuple[str, float]]:
        if not 0 < seconds < SLOW_SECONDS:
            yield path, seconds
            return
        yield path, SLOW_SECONDS if fast.ports else fast.every
        for port in fast.ports:
            yield ANY_PORT.sub(port, path, count=1), fast.every

    paths = {source: tuple(chain.from_iterable(starmap(ways, some))) for source, some in plan.paths.items()}
    return plan._replace(paths=paths)


class LeafStore:
    """The values that a stream has sent last, by source and path."""

    def __init__(self, plan: StreamPlan) -> None:
        self._absent = plan.absent
        self._leaves: dict[str, dict[Path, Leaf]] = {source: {} for source in plan.paths}
        self._renewed: dict[str, float] = {}
        """When a source with samples has sent something."""
        self._periods = {
            source: max(every)
            for source, paths in plan.paths.items()
            if (every := [seconds for _, seconds in paths if seconds])
        }
        self._starts = {
            tuple(plain_name(step.partition("[")[0]) for step in path.split("/")): source
            for source, paths in plan.paths.items()
            for path, _ in paths
        }
        self._sources: dict[Names, str] = {}
        self._compared = self._received = 0
        self._tables = plan.tables
        self._due: dict[str, float] = {}
        """When a round is to query a table."""
        self._changed: dict[str, dict[str, Any]] = {}
        """The rows that the switch has sent since a round began to query their table."""

    def held(self, now: float) -> dict[str, Any]:
        """By source all leaves, the oldest change first, without tables that are to be queried; None: the switch does not have the source."""
        due = [source for source in self._tables if now >= self._due.get(source, now)]
        self._changed |= {source: {} for source in due}
        kept = {
            source: tuple(leaves.values()) for source, leaves in self._leaves.items() if source not in due
        }
        return {**dict.fromkeys(self._absent), **kept}

    def renew(self, replies: Mapping[str, Any], now: float) -> None:
        """Take the tables that a round has queried, by source, with the rows that have changed meanwhile."""
        for source in self._changed.keys() & replies.keys():
            changed = self._changed.pop(source)
            leaves = [
                Leaf(path, {**rows, **changed}) for path, rows in replies[source] if isinstance(rows, dict)
            ]
            self._leaves[source] = {leaf.path: leaf for leaf in leaves}
            self._due[source] = now + TABLE_SECONDS

    async def add(self, message: LeafReader, now: float) -> None:
        """Take a message, in parts between which others have their turn.

        Raises:
            NetError: a source is silent, or there are too many leaves.
        """
        if len(message.deleted) * sum(map(len, self._leaves.values())) > MOST_COMPARED:
            raise NetError(f"the switch has deleted {len(message.deleted):,} paths at once")
        every, begun = self._leaves, self._leaves.copy()
        if message.deleted or len(message.leaves) >= AT_ONCE:
            # Copies, as it is taken in parts: a round in between sees what was there before.
            every = {source: dict(leaves) for source, leaves in every.items()}
        for path in message.deleted:
            if (source := self._source_of(path)) in self._tables:
                self._query(source, now)
            await self._delete(path, every)
        for number, (path, value) in enumerate(message.leaves, 1):
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
            source = self._source_of(path)
            if source and (source not in self._tables or self._has_rows(source, value, now)):
                # The newest is the last one: where a document and a leaf say the same, it counts. A document has the members that have changed.
                before = every[source].pop(path, None)
                both = before and isinstance(value, dict) and isinstance(before.value, dict)
                every[source][path] = Leaf(path, {**before.value, **value} if before and both else value)
                self._renewed[source] = now
        for source in self._tables:
            if (renewed := self._leaves[source]) is not begun[source]:  # meanwhile: neither may be the newest
                every[source] = renewed
                self._query(source, now)
        self._leaves = every
        await self._check(message.size, now)

    async def _check(self, received: int, now: float) -> None:
        if sum(map(len, self._leaves.values())) > MOST_LEAVES:
            raise NetError(f"the switch has sent more than {MOST_LEAVES:,} values")
        self._received += received
        if self._received > 2 * MOST_BYTES:
            kept = [leaf for leaves in self._leaves.values() for leaf in leaves.values()]
            self._received = await decode_aside(
                self._received, lambda: sum(getsizeof(str(leaf.value)) for leaf in kept)
            )
            if self._received > MOST_BYTES:
                raise NetError(f"the switch has sent values of more than {MOST_BYTES >> 20} MiB")
        for source, seconds in self._periods.items():
            if now - self._renewed.setdefault(source, now) > LATE_SAMPLES * seconds + GRACE_SECONDS:
                raise NetError(f"{source}: no sample for {now - self._renewed[source]:.0f} s")

    def _has_rows(self, source: str, value: Any, now: float) -> bool:
        """Whether a message about a table has whole rows. sonic-gnmi sends an empty one, or fields without a row, where it does not say what a row has now."""
        if not isinstance(value, dict) or not all(isinstance(row, dict) and row for row in value.values()):
            self._query(source, now)
            return False
        self._due.setdefault(source, now + TABLE_SECONDS)
        if source in self._changed:
            self._changed[source].update(value)
        return True

    def _query(self, source: str, now: float) -> None:
        """Let a round query this table, also if one is doing so now."""
        self._due[source] = now
        self._changed.pop(source, None)

    def _source_of(self, path: Path) -> str:
        """The source with the longest path that is the beginning of this one, or else one below it; empty: it was not subscribed to."""
        names = tuple(plain_name(step.name) for step in path)
        if names not in self._sources:
            if len(self._sources) >= MOST_NAMES:
                self._sources.clear()
            above = [names[:end] for end in range(len(names), 0, -1)]
            below = [start for start in self._starts if start[: len(names)] == names]
            known = (self._starts[one] for one in (*above, *below) if one in self._starts)
            self._sources[names] = next(known, "")
        return self._sources[names]

    async def _delete(self, path: Path, every: Mapping[str, dict[Path, Leaf]]) -> None:
        for leaves in every.values():
            for one in tuple(leaves):
                self._compared += 1
                if self._compared % AT_ONCE == 0:
                    await asyncio.sleep(0)
                if is_below(one, path):
                    del leaves[one]


def is_below(path: Path, start: Path) -> bool:
    """Whether a path is, or is below, another one, in which keys can be left out or be `*`."""
    return len(path) >= len(start) and all(
        step.name == above.name and all(value in ("*", dict(step.keys).get(key)) for key, value in above.keys)
        for step, above in zip(path, start, strict=False)
    )
