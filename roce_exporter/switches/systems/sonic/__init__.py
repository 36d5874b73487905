"""What SONiC's tables mean, whichever protocol brought them: pure functions, without I/O.

`redis_requests` and `gnmi_requests` both build `tables.SonicTables`; `read.read_tables` makes readings of them. So one switch
gives the same series over both.
"""
