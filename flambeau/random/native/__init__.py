"""Native text of the random fills: a small writer of LLVM text and what is written with it."""
