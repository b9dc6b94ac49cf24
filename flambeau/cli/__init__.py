"""The command line and the stand-in for torch."""
