"""The configuration file of all commands."""

import atexit
import tempfile
from pathlib import Path

from roce_exporter.cli.options import OptionError, config_flags, flags_of, make_parser

ALLOWED = (OptionError,)
CORE = ("cli/options.py", "yaml_document.py")
PARSER = make_parser()
KEYS = sorted(flag.name.removeprefix("--") for flag in flags_of("serve"))
WORDS = (
    *(f"{key}: ".encode() for key in KEYS),
    b"\n- ",
    b": ",
    b'"\\ud800"',
    b'"\\UFFFFFFFF"',
    b"&a ",
    b"*a",
    b"---\n",
    b"!!map ",
    b"|\n ",
)
FOLDER = tempfile.TemporaryDirectory(prefix="roce-fuzz-")
atexit.register(FOLDER.cleanup)
FILE = Path(FOLDER.name, "roce.yml")


def decode(data: bytes) -> None:
    FILE.write_bytes(data)
    try:
        flags = config_flags(str(FILE), "serve", (), PARSER)
        PARSER.parse_args(["serve", *flags])
    except ALLOWED as error:
        message = str(error)
        assert len(message.splitlines()) == 1
        assert message.startswith(str(FILE))
