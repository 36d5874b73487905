"""A client adds `&module=` to the name of a configured switch: a round of queries and a set of failed logins per module, at the same time."""
import asyncio, logging, os, ssl, subprocess, sys, tempfile
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.targets import read_switches_file
logins, open_now, most_open = [], 0, 0
async def switch(reader, writer):
    global open_now, most_open
    open_now += 1; most_open = max(most_open, open_now)
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            for line in head.decode().split("\r\n"):
                if line.lower().startswith("content-length:"): await reader.readexactly(int(line.split(":")[1]))
            if b"Authorization" in head or b"aaaLogin" in head: logins.append(head.split(b" ")[1].decode()[:20])
            await asyncio.sleep(0.1); writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
    except (asyncio.IncompleteReadError, OSError): pass
    finally: open_now -= 1
async def main():
    d = tempfile.mkdtemp(); open(d + "/pw", "w").write("wrong\n")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x", "-keyout", d + "/key", "-out", d + "/crt"], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); tls.load_cert_chain(d + "/crt", d + "/key")
    server = await asyncio.start_server(switch, "127.0.0.1", 0, ssl=tls)
    open(d + "/s.yml", "w").write(f"targets: {{sw: {{address: 'https://127.0.0.1:{server.sockets[0].getsockname()[1]}', module: cumulus, tls: {{insecure_skip_verify: 'true'}}, basic_auth: {{username: u, password_file: pw}}}}}}\n")
    prober = Prober(read_switches_file(d + "/s.yml"))
    answers = await asyncio.gather(*(prober.probe("sw", m, 6.0) for m in ("", "cumulus", "nxos", "eos")), return_exceptions=True)
    modules = {a.target.module for a in answers if not isinstance(a, BaseException)}
    print(f"one switch, configured as cumulus; modules that queried it at once: {sorted(modules)}; connections at once: {most_open}; failed logins: {len(logins)}")
    bad = len(modules) > 1
    print("FAULT: a client multiplies rounds and failed logins by naming modules" if bad else "OK: one round per switch, with its own module")
    sys.stdout.flush(); os._exit(bad)
logging.disable()
asyncio.run(main())
