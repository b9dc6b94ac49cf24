"""From records to kernels: a segment is lowered, fused and laid out as a program of steps.

Keeps     a plan depends on what was recorded and on sizes, never on addresses or values.
Touches   nothing itself.
Not here  recording (stream.py, segment.py), running plans (run.py)."""
