"""The command line: flags and the configuration file, and one module per command."""
