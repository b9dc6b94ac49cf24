"""Devices: memory, and kernels compiled and run on it.

Keeps     whoever records knows a device by its name alone (base/devices.py).
Touches   base, codegen.
Not here  when something is run (engine/)."""
