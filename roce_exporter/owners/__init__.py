"""Whose RDMA objects: from the kernel's lists of objects over process and cgroup to pod, job and unit."""
