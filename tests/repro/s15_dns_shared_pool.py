"""A DNS server that does not answer: lookups fill the event loop's pool of threads, in which password and config files are read, too."""
import asyncio, concurrent.futures, logging, os, socket, sys, tempfile, threading, time
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.targets import read_switches_file
stop = threading.Event()
def silent(host, *args, **kw):
    if "dead" in str(host): stop.wait(10); raise socket.gaierror(-3, "Temporary failure in name resolution")
    return REAL(host, *args, **kw)
REAL, socket.getaddrinfo = socket.getaddrinfo, silent

async def switch(reader, writer):
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    except (asyncio.IncompleteReadError, OSError): pass

async def main():
    server = await asyncio.start_server(switch, "127.0.0.1", 0)
    d = tempfile.mkdtemp(); open(d + "/pw", "w").write("x\n")
    auth = "basic_auth: {username: u, password_file: pw}"
    open(d + "/s.yml", "w").write("limits: {targets_at_once: 100}\ntargets:\n" + "".join(
        f"  d{i}: {{address: 'http://dead{i}.example.com', module: nxos, timeout: 5s}}\n" for i in range(40)) +
        f"  good: {{address: 'http://127.0.0.1:{server.sockets[0].getsockname()[1]}', module: nxos, timeout: 5s, {auth}}}\n")
    prober = Prober(read_switches_file(d + "/s.yml"))
    dead = [asyncio.create_task(prober.probe(f"d{i}", "", 5.0)) for i in range(40)]
    await asyncio.sleep(0.3)
    begin = time.monotonic(); good = await prober.probe("good", "", 5.0); took = time.monotonic() - begin
    fault = good.readings.faults.get("target", "")
    print(f"40 names that do not resolve; a target with an IP address took {took:.1f} s; fault: {fault[:80]!r}")
    bad = bool(fault) or took > 2
    print("FAULT: names that do not resolve stop a switch that has an address" if bad else "OK: lookups have threads of their own")
    sys.stdout.flush(); os._exit(bad)

logging.disable()
asyncio.run(main())
