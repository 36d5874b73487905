"""Settings of switches against the profile of the hosts: a check per file row, pure functions over samples."""
