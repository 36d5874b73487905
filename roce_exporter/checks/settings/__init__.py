"""The configuration audit compares settings with a profile. Pure functions over what the sources read."""

from roce_exporter.checks.settings.auditor import ALL_CHECKS, Auditor, audit
from roce_exporter.checks.settings.profile import Profile, ProfileError, built_in, load_profile
from roce_exporter.checks.settings.report import FORMATS, JSON, TABLE, as_json, as_table, is_clean

__all__ = [
    "ALL_CHECKS",
    "FORMATS",
    "JSON",
    "TABLE",
    "Auditor",
    "Profile",
    "ProfileError",
    "as_json",
    "as_table",
    "audit",
    "built_in",
    "is_clean",
    "load_profile",
]
