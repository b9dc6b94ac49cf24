"""The dynamic graph: nodes, saved values, the backward pass, hooks and modes.

Keeps     no reference cycle: nothing in a graph holds a Tensor strongly, so graphs go away with the
          last reference, higher derivatives included.
Touches   engine (the thread's stream holds the grad mode); Tensor is handed in by tensor/.
Not here  torch's public names (autograd/), derivatives (ops/)."""
