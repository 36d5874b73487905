"""The tests read the model of the dashboards as well as the generated files."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "dashboards"))
