"""Discovery: every address that a client names writes a WARN line, and after 4,096 of them the same ones write again."""
import asyncio, logging, os, sys, tempfile
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.targets import read_switches_file
ASKED, MOST = 600, 50
lines = 0

class Count(logging.Handler):
    def emit(self, record):
        global lines
        lines += 1

async def main():
    file = tempfile.mkdtemp() + "/s.yml"
    open(file, "w").write("discovery: {allow: [127.0.0.0/8], module: nxos}\n")
    prober = Prober(read_switches_file(file))
    for part in range(0, ASKED, 30):  # nobody listens on port 443 there
        await asyncio.gather(*(prober.probe(f"127.9.{n // 250}.{n % 250 + 1}", "", 2.0) for n in range(part, part + 30)))
    print(ASKED, "addresses asked for by one client:", lines, "lines of log")
    bad = lines > MOST
    print(f"FAULT: {lines} lines of log for {ASKED} requests" if bad else "OK: the log is bounded")
    sys.stdout.flush(); os._exit(bad)

logging.getLogger().addHandler(Count()); logging.getLogger().setLevel("WARNING")
asyncio.run(main())
