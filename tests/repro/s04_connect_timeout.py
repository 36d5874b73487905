"""An address that drops SYNs holds a place for the whole timeout: two dead switches of two places, and the healthy one gets no answer."""
import asyncio, logging, os, socket, sys, tempfile, time
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.targets import read_switches_file

def black_hole():  # a listener with a full queue: Linux drops further SYNs
    s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(0)
    fill = []
    for _ in range(4):
        c = socket.socket(); c.setblocking(False); c.connect_ex(s.getsockname()); fill.append(c)
    return s, fill

async def switch(reader, writer):
    while await reader.readuntil(b"\r\n\r\n"):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

async def main():
    server = await asyncio.start_server(switch, "127.0.0.1", 0)
    holes = [black_hole(), black_hole()]
    ports = [h[0].getsockname()[1] for h in holes] + [server.sockets[0].getsockname()[1]]
    file = tempfile.mkdtemp() + "/s.yml"
    open(file, "w").write("limits: {targets_at_once: 2}\ntargets:\n" + "".join(
        f"  sw{i}: {{address: 'http://127.0.0.1:{p}', module: nxos, timeout: 8s}}\n" for i, p in enumerate(ports)))
    prober = Prober(read_switches_file(file)); begin = time.monotonic(); ended = {}
    async def ask(name):
        a = await prober.probe(name, "", 8.0); ended[name] = round(time.monotonic() - begin, 1); return a
    dead1, dead2, good = await asyncio.gather(ask("sw0"), ask("sw1"), ask("sw2"))
    print("ended after s:", ended, "| healthy switch:", str(dict(good.readings.faults))[:110])
    bad = ended["sw0"] > 4 or any("too many" in f for f in good.readings.faults.values())
    print(f"FAULT: no connect timeout: a dead address is waited for {ended['sw0']} s of 8 s" if bad else "OK: a dead address is given up early")
    sys.stdout.flush(); os._exit(bad)

logging.disable()
asyncio.run(main())
