"""A network device whose pause counters a test sets, and the fast loop's polls of it."""

from dataclasses import dataclass, field

from roce_exporter.fastloop.episodes import Counts
from roce_exporter.fastloop.pfc_storm import Begun, Ended, StormState
from roce_exporter.fastloop.watch import CounterSample, PauseKey, Watch

PACKETS = 100_000.0
"""Packets per second and direction while nothing is paused."""

XOFF_FRAMES = 3000.0
"""Frames per second that keep a priority of a 100 Gb/s link paused: 65,535 quanta of 5.12 ns last 336 µs."""

SPEED = 12.5e9

RECEIVE = PauseKey("3", "receive")
TRANSMIT = PauseKey("3", "transmit")


@dataclass
class Nic:
    """Counters of some priorities; `kind` determines which of them the driver has."""

    kind: str = "duration"
    keys: tuple[PauseKey, ...] = (RECEIVE,)
    poll: float = 0.1
    watch: Watch = field(default_factory=Watch)
    now: float = 1000.0
    up: bool = True
    downs: int = 0
    speed: float | None = SPEED
    scope: frozenset[str] | None = None
    cross_check: int | None = None
    frozen: bool = False
    changes: list[tuple[float, PauseKey, Begun | Ended]] = field(default_factory=list)
    counts: dict[PauseKey, Counts] = field(default_factory=dict)
    shown: dict[PauseKey, Counts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.counts = {key: Counts(0.0, 0.0, 0.0, 0.0) for key in self.keys}
        self.look()

    def pass_time(
        self, seconds: float, share: float = 0.0, packets: float | None = None, ends: float = 0
    ) -> None:
        """Advance time while every key is paused for this share; `ends` pauses end in it. No poll takes place."""
        self.now += seconds
        rate = (0.0 if share >= 1 else PACKETS) if packets is None else packets
        for key, old in self.counts.items():
            self.counts[key] = Counts(
                old.paused + share * seconds,
                old.stops + share * seconds * XOFF_FRAMES,
                old.resumes + ends,
                old.packets + rate * seconds,
            )

    def look(self, took: float = 0.001) -> None:
        """Poll the counters now."""
        if not self.frozen:
            self.shown = {key: as_told(self.kind, counts) for key, counts in self.counts.items()}
        look = CounterSample(
            self.now,
            dict(self.shown),
            self.poll,
            took,
            self.up,
            self.downs,
            self.speed,
            self.scope,
            self.cross_check,
        )
        self.changes += [(self.now, change.key, change.what) for change in self.watch.see(look)]

    def run(
        self, seconds: float, share: float = 0.0, packets: float | None = None, ends_per_second: float = 0
    ) -> None:
        """Advance time and poll at every interval."""
        for _ in range(round(seconds / self.poll)):
            self.pass_time(self.poll, share, packets, ends_per_second * self.poll)
            self.look()

    def storm(self, seconds: float) -> None:
        """The priority is paused and nothing passes; the pause ends with the time."""
        self.run(seconds, 1.0)
        self.end_pause()

    def end_pause(self) -> None:
        """End one pause."""
        self.counts = {key: replace_resumes(counts, 1) for key, counts in self.counts.items()}

    @property
    def track(self):
        """The state machine of the first key."""
        return self.watch.tracks[self.keys[0]]

    @property
    def state(self) -> StormState:
        return self.track.state

    @property
    def told(self) -> list[str]:
        """The reports so far: `begun`, and the reason of each end."""
        return ["begun" if isinstance(what, Begun) else what.reason for _, _, what in self.changes]


def replace_resumes(counts: Counts, more: float) -> Counts:
    return counts._replace(resumes=counts.resumes + more)


def as_told(kind: str, counts: Counts) -> Counts:
    """The counters of a driver of this kind, from the true values."""
    if kind == "duration":
        return counts._replace(resumes=None)
    if kind == "duration and transitions":
        return counts
    if kind == "xoff_xon":
        return counts._replace(paused=None)
    if kind == "xoff_xon alone":
        return counts._replace(paused=None, packets=None)
    if kind == "frames":
        return counts._replace(paused=None, resumes=None)
    return Counts()
