"""A recorded host: what the standard tools print, in a folder or an archive.

`tree` reads the files, `recorded` plays them as a `Kernel`, `capture` writes them, `scrub` replaces what identifies a machine;
the other modules read and print the text and JSON of ethtool, rdma and dcb.
"""
