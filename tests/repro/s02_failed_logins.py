"""A wrong password: failed logins per probe, which lock the account of the switch. Right: one per probe, and a pause before the next."""
import asyncio, logging, os, sys, tempfile
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.targets import read_switches_file
refused = 0

async def switch(reader, writer):
    global refused
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        for line in head.decode().split("\r\n"):
            if line.lower().startswith("content-length:"): body = await reader.readexactly(int(line.split(":")[1]))
        await asyncio.sleep(0.05)
        if b"Authorization" in head or b"aaaLogin" in head: refused += 1
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")

async def main():
    server = await asyncio.start_server(switch, "127.0.0.1", 0)
    d = tempfile.mkdtemp(); open(d + "/pw", "w").write("wrong\n")
    port, most = server.sockets[0].getsockname()[1], 0
    for module in ("nxos",):
        global refused
        refused = 0
        open(d + "/s.yml", "w").write(f"""
targets: {{sw: {{address: 'http://127.0.0.1:{port}', module: {module}, basic_auth: {{username: monitor, password_file: pw}}}}}}
limits: {{cache: 0}}
""")
        prober = Prober(read_switches_file(d + "/s.yml"))
        for _ in range(3): await prober.probe("sw", "", 5.0)
        print(f"{module}: {refused} failed logins in 3 probes"); most = max(most, refused)
    bad = most > 3
    print(f"FAULT: {most} failed logins in 3 probes" if bad else "OK: at most one failed login per probe")
    sys.stdout.flush(); os._exit(bad)

logging.disable()
asyncio.run(main())
