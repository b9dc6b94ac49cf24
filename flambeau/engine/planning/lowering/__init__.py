"""Lowering: from an operator's signature to statements, once a signature.

Keeps     operators are written in the builder's words alone (lower.py).
Touches   nothing itself.
Not here  what of the statements shares a kernel (planning/fuse.py)."""
