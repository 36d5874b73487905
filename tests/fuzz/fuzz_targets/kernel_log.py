"""Records of the kernel log, one after another as in `dev/kmsg` of a recording; each is also read as a record of its own."""

from roce_exporter.catalog.kernel_events import EVENTS
from roce_exporter.host.kernel.kmsg import LogPart
from roce_exporter.host.recorded.log_text import RecordedLog, numbered
from roce_exporter.host_sources.kernel_log import LogPosition
from roce_exporter.model import MOST_TEXT, decode_record
from roce_exporter.normalise.log_lines import event_of, read_line

CORE = (
    "model/__init__.py",
    "normalise/log_lines.py",
    "host/recorded/log_text.py",
    "host_sources/kernel_log.py",
)
WORDS = (
    b"6,1,1,-;",
    b"30,2,1,-,caller=T1;",
    b"\n SUBSYSTEM=pci",
    b"\n DEVICE=+pci:0000:3b:00.0",
    b"mlx5_core 0000:3b:00.0 eth0: ",
    b"(pid 0): ",
    b"[qede_link_update:2631(eth0-0)]",
    b"NETDEV WATCHDOG: ",
)
NAMES = {"", *(event.name for event in EVENTS)}


def decode(data: bytes) -> None:
    if record := decode_record(data):
        assert len(record.text) <= MOST_TEXT
        assert "\n" not in record.text + record.device
        line = read_line(record)
        assert line is None or event_of(line) in NAMES
    position = LogPosition()
    # Twice the same: nothing is new the second time, and nothing can be lost by it.
    part = LogPart(tuple(raw for _, raw in numbered(data)), 0)
    list(position.accept(part))
    lost = position.lost
    assert list(position.accept(part)) == []
    assert position.lost == lost >= 0
    oldest = RecordedLog(lambda: data, oldest=True).read(10_000)
    assert set(oldest.records) <= set(part.records)
    assert RecordedLog(lambda: data, oldest=False).read(10_000).records == ()
