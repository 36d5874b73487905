"""What unknown senders on a mirrored link can do: take places for a while, and never make a counter fall."""

import struct
from types import SimpleNamespace
from typing import cast

import numpy as np

from roce_exporter.wire.decode.columns import Decoded
from roce_exporter.wire.decode.link_frames import LinkNeighbour, PauseFrame
from roce_exporter.wire.tally.pair_counts import BLOCKS, PairTable
from roce_exporter.wire.tally.tally import MOST_NEIGHBOURS, MOST_SENDERS, OTHER_SENDER, LinkEvents
from roce_exporter.wire.wire_samples import ShownPairs

PACKETS = BLOCKS["operation_packets"].start
QUANTA = (None, None, None, 65535, None, None, None, None)


def address(number: int) -> str:
    return bytes((2, 0, 0, *number.to_bytes(3))).hex(":")


def event(pauses: list[str], neighbours: list[str]) -> Decoded:
    return cast(
        "Decoded",
        SimpleNamespace(
            pauses=[(0, PauseFrame(source, QUANTA)) for source in pauses],
            neighbours=[LinkNeighbour(source, "leaf", "Ethernet4", "leaf") for source in neighbours],
        ),
    )


def test_invented_senders_keep_no_real_one_out_and_no_frame_is_lost() -> None:
    events, sent = LinkEvents(), 0
    for begin in range(0, 5 * MOST_SENDERS, MOST_SENDERS // 2):
        strangers = [address(begin + number) for number in range(MOST_SENDERS // 2)]
        events.add(event([*strangers, *["b8:00:00:00:00:01"] * 3], strangers[: MOST_NEIGHBOURS + 6]))
        sent += len(strangers) + 3
        assert len(events.pauses) <= MOST_SENDERS + 1
        assert len(events.neighbours) <= MOST_NEIGHBOURS
        assert sum(counts.frames for counts in events.pauses.values()) == sent
        others = events.pauses.get((OTHER_SENDER, 3))
        assert others is None or others.frames == others.xoff
    assert events.pauses["b8:00:00:00:00:01", 3].frames == 30
    events.add(event([], ["b8:00:00:00:00:99"]))
    assert "b8:00:00:00:00:99" in events.neighbours


def test_a_pair_that_is_forgotten_and_comes_back_begins_again() -> None:
    table, shown = PairTable(most=64), ShownPairs(4)

    def send(number: int, packets: int) -> None:
        if table.full:
            table.forget_half()
        row = table.number(struct.pack(">QQQQ", 1, number, 2, number))
        table.counts[row, PACKETS] += packets
        table.touch(np.array([row]), int(table.born.max()))

    others = 0
    for round_ in range(40):
        for number in range(60 if round_ % 5 == 4 else 0):
            send(100 + 60 * round_ + number, 5)
        for number in range(3):
            send(number, 1000)
        values = {pair.key: int(pair.counts[PACKETS]) for pair in shown.choose(table)}
        assert min(values.values()) >= 0
        assert values[b""] >= others
        others = values[b""]
