"""Facts and rules that every room speaks of: dtypes, layouts, promotion, shapes, errors, switches.

Keeps     no tensor and no state but the switches; everything is imported with flambeau, so it is
          light.
Touches   nothing of flambeau.
Not here  what operators mean (ops/), memory (devices/)."""
