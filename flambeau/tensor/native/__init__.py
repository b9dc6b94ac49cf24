"""The recorder's hot path as native code over CPython's public C interface."""
