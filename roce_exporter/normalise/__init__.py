"""Convert readings to samples in base units by the catalogue, with one plan per device, made when its names change."""
