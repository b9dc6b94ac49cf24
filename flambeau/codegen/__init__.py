"""From formulas to kernels' text: a vocabulary of words, its readers, loop nests, LLVM text.

Keeps     text depends on what is computed, never on sizes, strides, offsets or numbers; imported
          when the first kernel is made.
Touches   base.
Not here  what shares a kernel (engine/planning/), compiling and running (devices/)."""
