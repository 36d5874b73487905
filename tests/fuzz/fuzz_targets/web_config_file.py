"""The web config file, in a folder that holds a certificate, its key and an authority."""

import asyncio
import atexit
import tempfile
from pathlib import Path

import trustme

from roce_exporter.web.web_config_file import CURVES, HEADERS, SECTIONS, SUITES, TLS_KEYS, WebConfigFile
from roce_exporter.yaml_document import DocumentError

ALLOWED = (DocumentError,)
CORE = ("web/web_config_file.py", "yaml_document.py")
KEYS = (*SECTIONS, *TLS_KEYS, *HEADERS, "headers", "http2", "interval", "burst")
VALUES = ("cert.pem", "key.pem", "ca.pem", "RequireAndVerifyClientCert", "TLS12", "TLS13", *CURVES, *SUITES)
WORDS = (*(f"{key}: ".encode() for key in KEYS), *map(str.encode, VALUES))
FOLDER = tempfile.TemporaryDirectory(prefix="roce-fuzz-")
atexit.register(FOLDER.cleanup)
RUNNER = asyncio.Runner()
atexit.register(RUNNER.close)
FILE = Path(FOLDER.name, "web.yml")


def _issue() -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    authority.cert_pem.write_to_path(f"{FOLDER.name}/ca.pem")
    certificate.cert_chain_pems[0].write_to_path(f"{FOLDER.name}/cert.pem")
    certificate.private_key_pem.write_to_path(f"{FOLDER.name}/key.pem")


_issue()


def decode(data: bytes) -> None:
    FILE.write_bytes(data)
    try:
        config = RUNNER.run(WebConfigFile(FILE).current())
    except ALLOWED as error:
        message = str(error)
        assert len(message.splitlines()) == 1
        assert message.startswith(str(FILE))
        return
    assert all(value.isprintable() for _, value in config.headers)
    assert all(len(hashed) == 60 for hashed in config.users.values())
    assert config.rate_limit is None or 0 < config.rate_limit.interval < float("inf")
