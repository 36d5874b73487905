"""What is around the devices of a host: the pods that have them, the kernel log, and the RDMA namespaces that hide some."""
