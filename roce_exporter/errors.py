"""An error that the user can correct."""

NO_DEVICE = "no RDMA device is visible, or all are excluded; `roce-exporter check setup` says why"


class UserError(Exception):
    """Invalid input: one line that names it and the remedy. A command prints it and ends with exit code 2."""
