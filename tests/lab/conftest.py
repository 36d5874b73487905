"""The tests in `guest/` need a disposable kernel: `run.sh` boots one. Elsewhere they are not collected."""

import os

collect_ignore = [] if os.environ.get("ROCE_LAB_GUEST") else ["guest"]
