"""wire: 1,024 invented source addresses of pause frames, 64 of LLDP, and the places are taken for ever: the real culprit has no series."""
import os, sys
from types import SimpleNamespace
from roce_exporter.wire.decode.link_frames import PauseFrame
from roce_exporter.wire.decode.link_frames import LinkNeighbour
from roce_exporter.wire.tally.tally import LinkEvents
events, quanta = LinkEvents(), (None, None, None, 65535, None, None, None, None)
def pause(mac):
    fields = {"source": mac, "quanta": quanta, "per_priority": True}
    return PauseFrame(**{name: fields.get(name) for name in PauseFrame._fields}) if hasattr(PauseFrame, "_fields") else SimpleNamespace(**fields)
def mac(n): return f"02:00:00:00:{n >> 8:02x}:{n & 255:02x}"
events.add(SimpleNamespace(pauses=[(0, pause(mac(n))) for n in range(1100)], neighbours=[LinkNeighbour(mac(n), "c", "p", "n") for n in range(70)]))
for _ in range(50):  # later, and from then on: the culprit and the switch
    events.add(SimpleNamespace(pauses=[(0, pause("b8:ce:f6:00:00:01"))] * 1000, neighbours=[LinkNeighbour("b8:ce:f6:00:00:99", "leaf1", "Ethernet4", "leaf1")]))
culprit = ("b8:ce:f6:00:00:01", 3) in events.pauses; switch = "b8:ce:f6:00:00:99" in events.neighbours
print(f"senders {len(events.pauses)}, neighbours {len(events.neighbours)}; the sender of 50,000 frames has a series: {culprit}; the switch that sends LLDP: {switch}")
bad = not (culprit and switch)
print("FAULT: invented addresses keep the real ones out for ever" if bad else "OK: places go to those that send")
sys.exit(bad)
