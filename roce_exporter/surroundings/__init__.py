"""What is around the devices of a host: the pods that have them, and the RDMA namespaces in which some are hidden.

Each `Neighbour` is read once a minute between scrapes, with a deadline of its own; a scrape shows the last result and waits
for nothing. If a read fails, its series are missing until one succeeds, and `roce_exporter_source_up` says so.
"""

from roce_exporter.surroundings.neighbours import Neighbour, Surroundings

__all__ = ["Neighbour", "Surroundings"]
