"""What SONiC's tables mean, whichever protocol brought them: pure functions, without I/O.

The Redis door and the gNMI door both build `tables.SonicTables`; `interpret.read_tables` makes readings of them. So one switch
gives the same series over both.
"""
