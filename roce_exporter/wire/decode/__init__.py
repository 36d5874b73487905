"""Header decoders: pure functions over bytes (one per header), and over arrays of a whole batch."""
