"""What PromQL cannot see because it happens between two scrapes: pure state machines over what the sampler looked at.

No I/O and no clock in here: time comes in with every look.
"""
