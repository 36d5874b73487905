"""A host: the live kernel, where each value is, a recorded host and a simulated one."""
