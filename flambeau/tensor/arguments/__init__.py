"""What users hand in: numbers in nested sequences, arguments of calls."""
