"""Discovery: one address has many spellings (127.1, 0x7f.1, 2130706433), each with a round, a kept answer and logins of its own."""
import asyncio, logging, os, ssl, subprocess, sys, tempfile
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.targets import read_switches_file
NAMES = ("127.0.0.1", "127.1", "127.0.1", "0x7f.1", "2130706433", "0177.1", "0x7f000001", "127.0.0.01")
logins = 0
async def switch(reader, writer):
    global logins
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            logins += b"Authorization" in head; await asyncio.sleep(0.05)
            writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
    except (asyncio.IncompleteReadError, OSError): pass
async def main():
    d = tempfile.mkdtemp(); open(d + "/pw", "w").write("wrong\n")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x", "-keyout", d + "/key", "-out", d + "/crt"], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); tls.load_cert_chain(d + "/crt", d + "/key")
    server = await asyncio.start_server(switch, "127.0.0.1", 0, ssl=tls)
    open(d + "/s.yml", "w").write(f"discovery: {{allow: [127.0.0.0/8], module: cumulus, ports: {{https: {server.sockets[0].getsockname()[1]}}}, tls: {{insecure_skip_verify: 'true'}}, basic_auth: {{username: u, password_file: pw}}}}\n")
    prober = Prober(read_switches_file(d + "/s.yml")); counts = []
    for name in NAMES:  # one after the other, within the 10 s for which an answer is kept
        before = logins
        try: await prober.probe(name, "", 4.0)
        except Exception as error: print(name, type(error).__name__)
        counts.append(logins - before)
    print("failed logins at the same switch by spelling of its address:", dict(zip(NAMES, counts)))
    rounds = sum(count > 0 for count in counts)
    print(f"FAULT: {rounds} rounds for one switch within the time of one kept answer" if rounds > 1 else "OK: one switch has one state, whatever it is called")
    sys.stdout.flush(); os._exit(rounds > 1)
logging.disable()
asyncio.run(main())
