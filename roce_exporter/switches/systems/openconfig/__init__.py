"""Any switch with OpenConfig's models over gNMI."""
