"""A simulated host: ports with a small model of RoCE, exact and event-driven, for tests, benches and the demo.

`conditions` defines the state of a port, `scenarios` generates sequences of states, `rates` derives counter rates from them
and sums these up, `drivers` and `world` report the sums with a driver's names. Nothing here does I/O or reads a clock.
"""
