"""A hostile NX-OS: replies of small objects within the limit of bytes. 16 MiB per reply (of 32 allowed) cost far more than the reply."""
import asyncio, logging, os, resource, sys, tempfile
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.targets import read_switches_file
REPLY, MOST = 8 << 20, 400 << 20
BODY = b'{"a":[' + b",".join([b"[]"] * (REPLY // 3)) + b"]}"

async def switch(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            for line in head.decode().split("\r\n"):
                if line.lower().startswith("content-length:"): await reader.readexactly(int(line.split(":")[1]))
            writer.write(b"HTTP/1.1 200 OK\r\nSet-Cookie: APIC-cookie=a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY)); writer.write(BODY)
            await writer.drain()
    except (asyncio.IncompleteReadError, OSError): pass

async def serve(): 
    server = await asyncio.start_server(switch, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True); await asyncio.sleep(18)

async def main():
    child = await asyncio.create_subprocess_exec(sys.executable, __file__, "serve", stdout=asyncio.subprocess.PIPE)
    port = int(await child.stdout.readline())
    file = tempfile.mkdtemp() + "/s.yml"
    open(file, "w").write(f"targets: {{sw: {{address: 'http://127.0.0.1:{port}', module: nxos, timeout: 15s}}}}\n")
    prober = Prober(read_switches_file(file)); rss = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    before = rss(); answer = await prober.probe("sw", "", 15.0); grown = rss() - before; child.kill()
    print(f"6 replies of {REPLY >> 20} MiB; memory grew by {grown >> 20} MiB (at most {MOST >> 20}); faults {sorted(answer.readings.faults)}")
    bad = grown > MOST
    print(f"FAULT: one switch made the process grow by {grown >> 20} MiB" if bad else "OK: the memory of replies is bounded")
    sys.stdout.flush(); os._exit(bad)

logging.disable()
asyncio.run(serve() if sys.argv[1:] else main())
