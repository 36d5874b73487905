"""wire --serve: a shown pair that is forgotten and comes back between two scrapes keeps its old base: counters below zero and falling."""
import os, struct, sys
import numpy as np
from roce_exporter.wire.wire_samples import ShownPairs
from roce_exporter.wire.tally.pair_counts import BLOCKS
from roce_exporter.wire.tally.pair_counts import PairTable

PACKETS = BLOCKS["operation_packets"].start
def key(n): return struct.pack(">16s16s", b"\xfd" + n.to_bytes(15, "big"), b"\xfe" + n.to_bytes(15, "big"))

table, shown, clock = PairTable(most=64), ShownPairs(4), 0
def send(n, packets):
    global clock
    if table.full: table.forget_half()
    clock += 1; row = table.number(key(n)); table.counts[row, PACKETS] += packets; table.touch(np.array([row]), clock)

worst, fell, last = 0, 0, {}
for round_ in range(60):
    for n in range(60 if round_ % 5 == 4 else 4 * (not round_)): send(100 + round_ * 60 + n, 5)  # many short strangers push the job out of the table
    for n in range(3 if round_ else 0): send(n, 5000 if round_ == 1 else 1000)                                              # the job, which sends again before the next scrape
    for pair in shown.choose(table):
        value = int(pair.counts[PACKETS]); worst = min(worst, value)
        fell += value < last.get(pair.key, 0) and pair.key == b""  # a pair that begins again is a reset, which Prometheus knows
        last[pair.key] = value
print("lowest packet counter of a series:", worst, "| times that `other` fell:", fell)
bad = worst < 0 or fell > 0
print("FAULT: a counter of the wire is negative or `other` falls" if bad else "OK: no counter falls")
sys.stdout.flush(); os._exit(bad)
