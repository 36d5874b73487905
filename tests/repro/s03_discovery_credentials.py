"""Discovery: whoever can call /probe chooses address and module; the process takes the password of `discovery` there in the form of that module."""
import asyncio, logging, os, ssl, subprocess, sys, tempfile
from roce_exporter.switches.probe import Prober
from roce_exporter.switches.targets import read_switches_file
seen = set()

async def stranger(reader, writer):  # any host of an allowed network, not a switch
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            seen.update(line for line in head.split("\r\n") if line.lower().startswith("authorization"))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    except (asyncio.IncompleteReadError, OSError): pass

async def main():
    d = tempfile.mkdtemp()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x",
                    "-keyout", d + "/key", "-out", d + "/crt"], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); tls.load_cert_chain(d + "/crt", d + "/key")
    server = await asyncio.start_server(stranger, "127.0.0.7", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    open(d + "/pw", "w").write("s3cret\n")
    ports = f"ports: {{https: {port}}}, "  # the operator configured cumulus
    open(d + "/s.yml", "w").write("discovery: {allow: [127.0.0.0/8], module: cumulus, " + ports +
        "tls: {insecure_skip_verify: 'true'}, basic_auth: {username: monitor, password_file: pw}}\n")
    prober = Prober(read_switches_file(d + "/s.yml"))
    accepted = []
    for module in ("nxos", "eos"):
        try:
            await asyncio.wait_for(prober.probe("127.0.0.7", module, 3.0), 5); accepted.append(module)
        except Exception as error: print(module, "->", type(error).__name__)
    print("modules that a client could choose beside the configured one:", accepted, "| the stranger received:", sorted(seen))
    bad = bool(accepted)
    print("FAULT: the client of /probe chooses the module" + (", and the password goes to that address in its form" if seen else "")
          if bad else "OK: a client cannot choose another module than the configured one")
    sys.stdout.flush(); os._exit(bad)

logging.disable()
asyncio.run(main())
