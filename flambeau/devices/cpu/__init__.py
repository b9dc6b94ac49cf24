"""The CPU: memory, worker team, native runner, compiled kernels, matrix products and other native
kernels that no loop nest says.

Keeps     bits never depend on how many threads or which vectors there are.
Touches   base, codegen, ops (sizes of convolutions).
Not here  kernels made of loop nests (codegen/), which a segment needs (engine/planning/)."""
