"""Readings and the catalogue become samples in base units: one plan per device, made when its set of names changes."""
