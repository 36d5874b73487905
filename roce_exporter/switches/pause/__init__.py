"""The pause tree: from a paused host port through the switches to the port where pause starts. Pure, but for the clock of its caller."""
