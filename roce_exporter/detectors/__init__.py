"""Detectors of events that PromQL cannot see, because they happen between two scrapes: pure state machines over samples.

No I/O and no clock: every sample contains its time.
"""
