"""The generator of `deploy/windows/`, loaded under a name of its own: alerts and dashboards have a `generate.py`, too."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location

from deploy_tools import DEPLOY

_SPEC = spec_from_file_location("windows_generate", DEPLOY / "windows/generate.py")
assert _SPEC
assert _SPEC.loader
_MODULE = module_from_spec(_SPEC)
sys.modules["windows_generate"] = _MODULE
_SPEC.loader.exec_module(_MODULE)

EVIDENCE = _MODULE.EVIDENCE
configuration = _MODULE.configuration
conversions = _MODULE.conversions
entries = _MODULE.entries
evidence = _MODULE.evidence
rules = _MODULE.rules
