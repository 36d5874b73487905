"""The first file of the zipapp. Every Python 3 must be able to parse it, so that an old one prints a line and no traceback."""

# ruff: noqa: INP001 - the top of the zipapp is not a package

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the zipapp runs with the Python of the machine, whichever that is
    sys.stderr.write(
        "roce-exporter: needs Python 3.11 or newer; %s is %s. Start it with a newer one: python3.11 FILE\n"  # noqa: UP031 - for old versions
        % (sys.executable, sys.version.split()[0])
    )
    sys.exit(2)

from unpack import start

sys.exit(start())
