"""A switch that renames its objects at every probe: what the interpreter remembers of old series never shrinks."""
import os, sys, tracemalloc
from roce_exporter.switches.interpretation import Interpreter
from roce_exporter.switches.systems.nxos import read as nxos, requests
from roce_exporter.switches.readings import SwitchReading, SwitchReadings
ROUNDS, PORTS, MOST = 40, 200, 6 << 20
interpreter = Interpreter(requests.MODULE.dialect)
def round_(n):
    readings = tuple(SwitchReading(nxos.STATISTICS, (("port", f"Ethernet{n}/{p}"), ("queue", "3")), dict.fromkeys(("txPackets", "txBytes", "dropPackets", "dropBytes", "pfcTxPpp", "pfcRxPpp"), 1)) for p in range(PORTS))
    return len(interpreter.samples("sw", SwitchReadings(readings=readings)).series)
series = round_(0); tracemalloc.start(); sizes = []
for n in range(1, ROUNDS):
    round_(n); sizes.append(tracemalloc.get_traced_memory()[0])
grown = sizes[-1] - sizes[1]
print(f"{series} series per round; after {ROUNDS} rounds {grown >> 10} KiB more than after two (at most {MOST >> 10})")
bad = grown > MOST
print(f"FAULT: the interpreter grew by {grown >> 20} MiB and keeps growing" if bad else "OK: what is remembered is bounded")
sys.stdout.flush(); os._exit(bad)
