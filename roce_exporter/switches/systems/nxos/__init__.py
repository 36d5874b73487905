"""Cisco NX-OS over NX-API."""
