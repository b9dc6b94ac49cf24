"""Planning with sizes as symbols: Sizes and their tape, signatures and segments without sizes."""
