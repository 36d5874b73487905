"""A big chassis: while its replies are interpreted the event loop stands still, so /-/healthy and all other probes wait."""
import asyncio, json, logging, os, sys, tempfile, time
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.targets import read_switches_file
PORTS, MOST = 1024, 0.25

def statistics():  # the documented reply of a class query: eight classes per port
    one = lambda p, q: {"ipqosQueuingStats": {"attributes": {"dn": f"sys/ipqos/queuing/policy/out/sys/intf-[eth1/{p}]/queuingStats-c-out-8q-q{q}",
        "cmapName": f"c-out-8q-q{q}", "txPackets": "1", "txBytes": "2", "dropPackets": "0", "randDropPackets": "0", "randEcnMarkedPackets": "0", "currQueueDepth": "0"}}}
    return json.dumps({"totalCount": "1", "imdata": [one(p, q) for p in range(1, PORTS + 1) for q in range(8)]}).encode()

def reply(body): return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
DME, NONE = reply(statistics()), reply(json.dumps({"ins_api": {"outputs": {"output": {"code": "400", "msg": "no"}}}}).encode())
LOGIN = b"HTTP/1.1 200 OK\r\nSet-Cookie: APIC-cookie=abc\r\nContent-Length: 2\r\n\r\n{}"

async def switch(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            for line in head.decode().split("\r\n"):
                if line.lower().startswith("content-length:"): await reader.readexactly(int(line.split(":")[1]))
            writer.write(LOGIN if b"aaaLogin" in head else DME if b"/api/node" in head else NONE); await writer.drain()
    except (asyncio.IncompleteReadError, OSError): pass

async def main():
    server = await asyncio.start_server(switch, "127.0.0.1", 0)
    file = tempfile.mkdtemp() + "/s.yml"
    open(file, "w").write(f"targets: {{sw: {{address: 'http://127.0.0.1:{server.sockets[0].getsockname()[1]}', module: nxos, priorities: all, timeout: 15s}}}}\n")
    prober, worst = Prober(read_switches_file(file)), 0.0
    async def heart():
        nonlocal worst
        while True:
            b = time.monotonic(); await asyncio.sleep(0.01); worst = max(worst, time.monotonic() - b - 0.01)
    beat = asyncio.create_task(heart())
    begin = time.monotonic(); answer = await prober.probe("sw", "", 15.0); total = time.monotonic() - begin; await asyncio.sleep(0.05); beat.cancel()
    print(f"{PORTS} ports, {len(answer.samples[0].series)} series, faults {sorted(answer.readings.faults)}; longest pause of the event loop {worst:.2f} s of {total:.2f} s (at most {MOST})")
    bad = worst > MOST and worst > 0.3 * total  # the second, because on a busy machine everything pauses
    print(f"FAULT: the event loop stood still for {worst:.1f} s" if bad else "OK: the event loop kept going")
    sys.stdout.flush(); os._exit(bad)

logging.disable()
asyncio.run(main())
