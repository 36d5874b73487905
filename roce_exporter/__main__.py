"""`python -m roce_exporter` is `roce-exporter`."""

import sys

from roce_exporter.cli import main

sys.exit(main())
