"""Rules about the RDMA transport (InfiniBand Architecture Specification, chapter 9): loss, silence, refusals, and programs that err.

The counters of a requester and of a responder name the two ends of a connection, so most of these causes have a side: what this
host's requests met is the matter of the path or the peer, what the peer's requests met here is the matter of this host.
"""

from __future__ import annotations

from collections.abc import Iterator

from roce_exporter.checks.finding import Side
from roce_exporter.checks.health.causes import MEDIUM, Rule, Symptom, risen, rose, texts
from roce_exporter.checks.health.congestion_rules import RECEIVE, TRANSMIT
from roce_exporter.checks.health.counter_rules import counters_of, discards_too_long
from roce_exporter.checks.health.link_rules import DOWN_COUNTERS, UP, losses, speed_and_model
from roce_exporter.view.host_view import PortView, Rise
from roce_exporter.words import duration, number, share, some

WINDOW = 600.0
"""Seconds in which errors of connections are looked for."""

TIMEOUTS = "roce_transport_ack_timeouts_total"
EXCEEDED = "roce_transport_retries_exceeded_total"
RNR_EXCEEDED = "roce_transport_rnr_retries_exceeded_total"
OUT_OF_SEQUENCE = "roce_transport_out_of_sequence_total"
DUPLICATES = "roce_transport_duplicate_requests_total"
LOST = (
    ("roce_transport_packet_sequence_errors_total", "NAKs for lost packets"),
    ("roce_transport_implied_naks_total", "lost responses"),
    (OUT_OF_SEQUENCE, "packets out of sequence"),
)
DROPPED = tuple(
    f"roce_{name}_discards_total" for name in ("phy_receive", "port_receive", "buffer", "host_buffer")
)
"""Each counts the same packets or a part of them."""
AGAIN = "roce_transport_retransmitted_packets_total"
"""EFA, ionic and iWARP: packets sent again, whatever for."""
AGAINS = {"iw": 10.0}
"""By protocol, the same of `MANY_AGAIN`: iWARP is TCP, which loses some packets to find its rate and sends again what was lost."""
SENT_AGAIN = (
    *(name for name, _ in LOST[:2]),
    "roce_transport_sequence_naks_sent_total",
    DUPLICATES,
    AGAIN,
    TIMEOUTS,
    EXCEEDED,
)
"""The second sign of loss: what arrives out of sequence alone may have been reordered."""
MANY_AGAIN = 100.0
"""Go-back-N sends some hundred packets again for one that is lost (alert RoceWireRetransmissions), and SRD some on other paths without loss."""
GAP = 1000.0
"""Packets that follow a lost one before it is sent again, and arrive out of sequence: 400 Gbit/s in 80 us."""
PER_TIMEOUT = 16.0
"""Packets that a timeout sends again; a loss between packets that arrive is repeated without one."""
FEW = 10.0
"""Lost packets that mean something where few packets pass."""


ADAPTIVE = "roce_transport_adaptive_retransmits_total"
"""mlx5: packets sent again before the timer of the queue pair ends. 4 to 11 for a peer that does not answer, the first of them within 0.1 s."""
SILENT_EVENTS = 4.0
"""Adaptive retransmissions in one stretch: the loss of a last packet makes one or two."""
STRETCH = 30.0
"""Seconds in which they come."""
FAILED = (
    "roce_transport_requester_completion_errors_total",
    *(f"roce_transport_{kind}_request_errors_total" for kind in ("read", "write")),
)
"""Work requests that failed, whatever for: of mlx5 and others, and of EFA by kind."""
FLUSHED = "roce_transport_requester_flushed_completions_total"
RNR_NAKS, NOT_READY = "roce_transport_rnr_naks_received_total", "NAKs for lack of a receive request"


SEVERAL = 2
"""Siblings that outvote a card."""
ALL_LOST = 0.9
"""Share of probes to a peer that are lost if it does not answer."""
INFERRED = "inferred"
"""In place of a direction: work requests that failed, not why."""
LOSSY = "lossy"
"""In place of a direction: a silence that losses of packets can explain, or of which no loss can be seen."""
RARELY = 0.1
"""Share of lost packets below which no eight transmissions of one are lost in a row (1e-8), so that no queue pair gives up by it."""
NAMED = (
    ("roce_transport_unresponsive_peers_total", "times the device found a peer unresponsive"),
    ("roce_transport_impaired_connections_total", "times it found a connection to a peer impaired"),
)
WAITED = ((TIMEOUTS, "acknowledgement timeouts"), (ADAPTIVE, "packets sent again because nothing came back"))


def _silence(port: PortView) -> Iterator[Symptom]:
    """Retries that were used up, packets sent again and again, or timeouts: a peer that does not answer, unless packets are seen to get lost."""
    exceeded, timeouts, again = (port.rise(name, WINDOW) for name in (EXCEEDED, TIMEOUTS, ADAPTIVE))
    uncounted = _unexplained(port) if _is_silent(port) and exceeded is None else 0.0
    gave_up = uncounted >= 1 or (exceeded is not None and exceeded.amount > 0)
    unanswered = _unanswered(port)
    late = timeouts is not None and timeouts.amount > port.limit("ack_timeouts", "events")
    if not gave_up and not unanswered and not late:
        return
    # Peers that repeat their requests are alive: what they are answered is lost, or comes late.
    lost = risen(port, LOST if gave_up else (*LOST, (DUPLICATES, "requests that peers sent again")), WINDOW)
    waited = sum(rise.amount for rise in (timeouts, again) if rise)
    losses_seen = sum(rise.amount for rise, _ in lost)
    side = _side_of_silence(port, losses_seen, waited, gave_up=gave_up)
    peers = [*_silent_peers(port), *(said for _, said in risen(port, NAMED, WINDOW))]
    alone, is_cut = _calm_siblings(port) if side is Side.PEER and not peers else (0, False)
    # Which of the signs these requests failed by is not known.
    failed = [some(uncounted, "work requests failed meanwhile")] if uncounted >= 1 else []
    failed += [said for _, said in risen(port, ((RNR_NAKS, NOT_READY),), WINDOW) if failed]
    clean = not lost and any(port.rise(name, WINDOW) for name, _ in LOST)
    evidence = texts(
        *(said for _, said in risen(port, ((EXCEEDED, "queue pairs gave up"),), WINDOW)),
        *failed,
        *(said for _, said in (*risen(port, WAITED, WINDOW), *lost)),
        *_whose(port),
        *peers,
        alone and f"its {alone} siblings send as well and have none",
        is_cut and "what it receives is less than half of theirs",
        clean and "no packet is seen to get lost: what arrives at the peer is in order",
    )
    against = {
        Side.HOST: "a peer whose card of this rail alone is dead looks the same from here",
        Side.PEER: "a path that is cut completely looks the same from here",
        Side.FABRIC: "a peer that restarts loses packets, too",
    }
    side = Side.HOST if is_cut else side
    doubt = alone and not is_cut and "this card is at fault if it gives up towards several peers"
    cause = "peer_silent" if unanswered else "ack_timeouts"
    way = "" if clean or (side is Side.PEER and lost) else LOSSY
    name = "retries_exceeded" if gave_up else cause
    yield Symptom(name, evidence, texts(against.get(side), doubt), side, direction=way)


def _calm_siblings(port: PortView) -> tuple[int, bool]:
    """How many other cards of this model send and wait for no peer, where there are several and this one goes on to wait; whether it receives little next to them.

    A dead host takes all rails, and a card that reaches no peer gets no answers. One dead process takes the queue pairs of one rail,
    which give up within the time of their retries.
    """
    spans = [span for name in (EXCEEDED, TIMEOUTS, ADAPTIVE) if (span := _lasting(port, name))]
    _, model = speed_and_model(port)
    others = [one for one in port.host.ports() if any(model[1:]) and one.device != port.device]
    alike = [one for one in others if speed_and_model(one)[1] == model]
    waits = any(one.rose(name, WINDOW) for one in alike for name in (TIMEOUTS, EXCEEDED, ADAPTIVE))
    busy = [one for one in alike if (sent := one.rise(TRANSMITTED, WINDOW)) and sent.rate > IDLE]
    if not spans or waits or len(busy) < SEVERAL:
        return 0, False
    begin, end = min(begin for begin, _ in spans), max(end for _, end in spans)
    received = sorted(one.between(RECEIVED, begin, end) for one in busy)
    # By hand: the module `statistics` costs each daemon two thirds of a megabyte.
    median = (received[(len(busy) - 1) // 2] + received[len(busy) // 2]) / 2
    return len(busy), port.between(RECEIVED, begin, end) < median / 2


def _lasting(port: PortView, name: str) -> tuple[float, float] | None:
    """Begin and end of the rise of a counter that lasts longer than queue pairs of one peer need to give up, all at once or one after the other.

    Measured between the first and the last interval with a rise: within these two it can be a moment.
    """
    rising = [(begin, end) for begin, end, amount in port.stretches(name, 0.0, WINDOW) if amount]
    lasts = rising and rising[-1][0] - rising[0][1] > 2 * RETRY_TIME
    return (rising[0][0], rising[-1][1]) if lasts else None


def _whose(port: PortView) -> Iterator[str]:
    """The owners whose queue pairs wait, where counter sets are read."""
    for name, what in ((EXCEEDED, "queue pairs gave up"), *WAITED):
        owned = name.replace("roce_", "roce_owner_", 1)
        for track in port.tracks(owned):
            rise = port.rise_of(owned, track, WINDOW)
            if rise and rise.amount:
                yield f"{track.labels['owner']}: {rose(rise, what)}"


def _silent_peers(port: PortView) -> Iterator[str]:
    """Which peer it is: one that does not answer probes, one whose connections ended, or the only one that there is."""
    for track in port.tracks("roce_probe_pair_lost_total"):
        match = {label: track.labels[label] for label in ("peer", "source_port")}
        lost, sent = (
            port.rise_of("roce_probe_pair_lost_total", track, WINDOW),
            port.rise("roce_probe_pair_sent_total", WINDOW, **match),
        )
        if lost and sent and lost.amount >= max(ALL_LOST * sent.amount, 1):
            yield f"probes to {track.labels['peer']} are not answered ({number(lost.amount)} of {number(sent.amount)} lost)"
    connections = port.host.of(port.device, "", "roce_owner_connections")
    for track in connections:
        if max(value for _, value in track.points) > (track.now or 0.0):
            yield f"connections of {track.labels['owner']} to {track.labels['peer']} ended meanwhile"
    peers = {track.labels["peer"] for track in connections if track.now}
    if len(peers) == 1:
        yield f"the only peer with connections of RDMA-CM is {min(peers)}"


def _unanswered(port: PortView) -> bool:
    """Whether in some stretch packets were sent again because nothing came back, and fewer were answered by a NAK."""
    return any(
        amount >= SILENT_EVENTS and amount > sum(port.between(name, begin, end) for name, _ in LOST)
        for begin, end, amount in port.stretches(ADAPTIVE, STRETCH, WINDOW)
    )


def _is_silent(port: PortView) -> bool:
    return any(port.rose(name, WINDOW) for name in (TIMEOUTS, ADAPTIVE))


def _unexplained(port: PortView) -> float:
    """Failed work requests that no refusal, no retry that is counted and no flush explains."""
    explained = (FLUSHED, EXCEEDED, RNR_EXCEEDED, *counters_of("requests_refused"))
    failed, known = (sum(port.rose(name, WINDOW) for name in names) for names in (FAILED, explained))
    return failed - known


REACTIONS = "roce_cnp_handled_total"
TRANSMITTED, RECEIVED = (f"roce_port_{way}_packets_total" for way in (TRANSMIT, RECEIVE))
UNCOUNTED = (5.0, 30.0)
"""CNPs that the NIC made itself for a queue pair that nobody answers: 9 to 12 in all trials."""
RETRY_TIME = 60.0
"""Seconds until a queue pair gives up with the usual timer of NCCL (20, 7 retries)."""
IDLE = 10.0
"""Packets per second: whoever sends fewer is sent no CNPs."""


def _uncounted(port: PortView) -> Iterator[Symptom]:
    """GPU-initiated (DEVX) queue pairs: the port counts no timeout of theirs, but the reactions to what is sent again."""
    reactions = port.rise(REACTIONS, WINDOW)
    silent = port.tracks("roce_transport_slow_restart_cnps_total") and not any(
        port.rose(name, WINDOW) for name in (TIMEOUTS, ADAPTIVE, "roce_transport_slow_restart_cnps_total")
    )
    if reactions is None or not silent or not UNCOUNTED[0] <= reactions.amount <= UNCOUNTED[1]:
        return
    bursts = [(begin, end) for begin, end, amount in port.stretches(REACTIONS, 0.0, WINDOW) if amount]
    begin, end = bursts[0][0], bursts[-1][1]
    blind = not port.current(TRANSMITTED) and "what this port sent meanwhile is not seen"
    sent = port.between(TRANSMITTED, bursts[-1][0], end) / (end - bursts[-1][0])
    if bursts[-1][0] - bursts[0][1] <= RETRY_TIME and sent < IDLE:
        said = f"{number(reactions.amount)} reactions to congestion within {duration(end - begin)} on a port that sends next to nothing"
        uncounted = "no timeout and no retransmission of a queue pair that the port counts"
        yield Symptom("retransmissions_uncounted", (said, uncounted), texts(blind))


def _side_of_silence(port: PortView, lost: float, timeouts: float, *, gave_up: bool) -> Side:
    link = losses(port, WINDOW)
    if link and link.amount and _are_together(port):
        return Side.LINK
    sent = port.rose(TRANSMITTED, WINDOW)
    if not lost or lost < timeouts or (gave_up and lost < RARELY * sent):
        return Side.PEER
    way = RECEIVE if port.rose(OUT_OF_SEQUENCE, WINDOW) > lost / 2 else TRANSMIT
    return _side_of_loss(port, lost, way)[0] or Side.FABRIC


def _are_together(port: PortView) -> bool:
    """Whether the silence comes with losses of the link: it begins no sooner, and ends soon after the last, unless the port is down."""
    lost, waits = (
        [stretch for name in names for stretch in port.stretches(name, 0.0, WINDOW) if stretch[2]]
        for names in (DOWN_COUNTERS, (TIMEOUTS, EXCEEDED, ADAPTIVE))
    )
    begins = min((begin for begin, _, _ in lost), default=0.0)
    ends = max((end for _, end, _ in lost), default=0.0)
    is_later = all(begin >= begins - RETRY_TIME for begin, _, _ in waits)
    return is_later and (not port.highest(UP) or all(begin <= ends + 2 * RETRY_TIME for begin, _, _ in waits))


def _loss(port: PortView) -> Iterator[Symptom]:
    for names, direction, what in (
        ((OUT_OF_SEQUENCE,), RECEIVE, "received packets were out of sequence"),
        (tuple(name for name, _ in LOST[:2]), TRANSMIT, "sent packets or their responses were lost"),
        ((AGAIN,), TRANSMIT, "sent packets were sent again"),
    ):
        rises = [rise for name in names if (rise := port.rise(name, MEDIUM)) is not None]
        amount = sum(rise.amount for rise in rises)
        passed = port.rise(f"roce_port_{direction}_packets_total", MEDIUM)
        times = AGAINS.get(port.label("roce_device_info", "protocol"), MANY_AGAIN) if AGAIN in names else 1.0
        silent = amount <= PER_TIMEOUT * port.rose(TIMEOUTS, MEDIUM)
        late = port.rose(TIMEOUTS, WINDOW) > port.limit("ack_timeouts", "events")
        # where queue pairs waited for what was lost and none gave up, it was much for a moment
        waited = late and not (silent or AGAIN in names or port.rose(EXCEEDED, WINDOW))
        if not amount or not (waited or is_much(port, amount, passed, times)):
            continue
        if AGAIN in names and (silent or any(port.tracks(name) for name, _ in LOST)):
            continue  # nothing came back, or the losses themselves are counted
        ratio = share(amount / passed.amount) if passed and passed.amount else "an unknown share"
        side, why = _side_of_loss(port, amount, direction)
        # Where drops of this port are counted and are few, a full port explains none.
        dropped = [port.rose(name, MEDIUM) for name in DROPPED if port.tracks(name)]
        way = "" if direction == RECEIVE and not side and dropped and max(dropped) < amount / 4 else direction
        said = f"{some(amount, what)} within {duration(rises[0].seconds)} ({ratio})"
        spray = names[0] == OUT_OF_SEQUENCE and "switches that spray packets reorder them without loss"
        again = sum(port.rose(name, MEDIUM) for name in SENT_AGAIN)
        alone = bool(spray) and not side and again * GAP < amount
        weight = min(1.0, amount / passed.amount * 100) if passed and passed.amount else 0.0
        if side is Side.HOST:  # the gap is the shadow of the drop
            yield Symptom("port_drops", texts(why, said), weight=weight, direction=direction)
        else:
            evidence, against = texts(said, why), texts(spray)
            yield Symptom("packet_loss", evidence, against, side, weight, alone, direction=way)


def is_much(port: PortView, amount: float, packets: Rise | None, times: float = 1.0) -> bool:
    """A ratio of many packets, or at least some losses among few. The limits are multiplied by `times`."""
    if packets is None or not packets.amount:
        return amount >= FEW
    ratio = amount / packets.amount
    if packets.rate > port.limit("marked_packets", "packets_per_second"):
        return ratio > times * port.limit("packet_loss", "ratio")
    return amount >= FEW and ratio > times * port.limit("packet_loss_severe", "ratio")


def _side_of_loss(port: PortView, lost: float, direction: str) -> tuple[Side | None, str | None]:
    """Loss at this port is not loss in the fabric. Drops on receipt do not explain losses of sent packets."""
    way = "receipt" if direction == RECEIVE else "sending"
    dropped = f"packets were dropped by this port on {way}"
    causes = (
        ("roce_phy_receive_crc_errors_total", Side.LINK, "packets arrived here corrupted"),
        ("roce_phy_symbol_errors_total", Side.LINK, "symbol errors of this link"),
        ("roce_phy_fec_uncorrectable_blocks_total", Side.LINK, "blocks of this link could not be corrected"),
        (f"roce_phy_{direction}_discards_total", Side.HOST, dropped),
        (f"roce_port_{direction}_discards_total", Side.HOST, dropped),
    )[: -1 if discards_too_long(port) else None]
    rises = [(port.rose(name, MEDIUM), side, what) for name, side, what in causes]
    for amount, side, what in rises:
        if amount and amount >= lost / 4:
            return side, some(amount, what)
    return None, None


def _is_often(port: PortView, naks: Rise | None, packets: Rise | None) -> bool:
    """Whether receivers were not ready so often as is too much for losses, too: each time a packet is sent in vain, and its queue pair waits."""
    if not naks or not naks.amount:
        return False
    often = naks.rate > port.limit("receiver_not_ready", "per_second")
    return often or (packets is not None and is_much(port, naks.amount, packets))


def _not_ready(port: PortView) -> Iterator[Symptom]:
    gave_up = port.rise(RNR_EXCEEDED, WINDOW)
    naks, lately = port.rise(RNR_NAKS, WINDOW), port.rise(RNR_NAKS, MEDIUM)
    many = _is_often(port, lately, port.rise(TRANSMITTED, MEDIUM))
    # Where the driver does not count those that gave up, a request that failed tells.
    failed = 0.0 if gave_up or not (naks and naks.amount) or _is_silent(port) else _unexplained(port)
    if (gave_up and gave_up.amount) or many or failed >= 1:
        counters = (
            (RNR_EXCEEDED, "queue pairs gave up on a receiver that was never ready"),
            (RNR_NAKS, NOT_READY),
        )
        said = (said for _, said in risen(port, counters, WINDOW))
        yield Symptom(
            "receiver_not_ready",
            texts(*said, failed >= 1 and some(failed, "work requests failed meanwhile")),
        )


def _empty(port: PortView) -> Iterator[Symptom]:
    packets = port.rise(RECEIVED, MEDIUM)
    counters = (
        ("roce_transport_rnr_naks_sent_total", "times this host was not ready"),
        ("roce_out_of_buffer_total", "packets dropped for lack of a receive request"),
    )
    for rise, said in risen(port, counters, MEDIUM):
        much = not (packets and packets.amount) or (
            rise.amount / packets.amount > port.limit("packet_loss_severe", "ratio")
        )
        if much or _is_often(port, rise, packets):
            yield Symptom("receive_queue_empty", (said,))


def _local(port: PortView) -> Iterator[Symptom]:
    if any(port.rose(name, WINDOW) for name in counters_of("local_errors")):
        return
    rest = _unexplained(port)
    # A driver without the counters of those that gave up: the sign of the peer is the finding.
    silent = port.rise(EXCEEDED, WINDOW) is None and _is_silent(port)
    refused = port.rise(RNR_EXCEEDED, WINDOW) is None and port.rose(RNR_NAKS, WINDOW)
    if rest >= 1 and not silent and not refused:
        seconds = duration(min(WINDOW, port.host.end - port.host.begin))
        said = f"{some(rest, 'work requests')} failed within {seconds} that no NAK and no retry explains"
        yield Symptom("local_errors", (said,), direction=INFERRED)


def _corruption(port: PortView) -> Iterator[Symptom]:
    window, crc = port.limit("icrc_errors", "window"), "roce_phy_receive_crc_errors_total"
    for _, said in risen(
        port, (("roce_transport_icrc_errors_total", "packets with a wrong invariant CRC"),), window
    ):
        own = port.rose(crc, window)
        clean = not own and port.current(crc) and "the link's own checksum is clean"
        cable = (
            own and f"{some(own, 'packets')} failed the link's checksum, too: the cable can be the culprit"
        )
        yield Symptom("corruption", texts(said, clean), texts(cable))


TRANSPORT_RULES: tuple[Rule, ...] = (
    *(_silence, _uncounted, _loss, _not_ready),
    *(_empty, _local, _corruption),
)
"""Rules of one port."""
