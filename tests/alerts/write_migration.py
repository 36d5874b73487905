"""Write the tables of docs/migration.md: `python tests/alerts/write_migration.py`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # what pytest does: the folder of all tests

from migration_tables import DOCUMENT, document

if __name__ == "__main__":
    DOCUMENT.write_text(document())
