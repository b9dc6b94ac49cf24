"""LLVM text of the native recorder: one file a family of its functions.

Keeps     text depends on offsets of slots alone.
Touches   nothing itself.
Not here  compiling and holding it (library.py), the callables (callables.py)."""
