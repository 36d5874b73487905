"""The configuration audit compares settings with a profile. Pure functions over what the sources read."""

from roce_exporter.checks.settings.auditor import ALL_CHECKS, Auditor, audit
from roce_exporter.checks.settings.profile import Profile, ProfileError, built_in, load_profile

__all__ = ["ALL_CHECKS", "Auditor", "Profile", "ProfileError", "audit", "built_in", "load_profile"]
