"""`python -m roce_exporter` is `roce-exporter`. Python 3.6 must be able to parse this file, so that an old one prints a line and no traceback."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - in a checkout no installer has compared the versions
    sys.stderr.write(
        f"roce-exporter: needs Python 3.11 or newer; {sys.executable} is {sys.version.split()[0]}\n"
    )
    sys.exit(2)

from roce_exporter.cli import main

sys.exit(main())
