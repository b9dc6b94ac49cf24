"""torch's protocol by which classes and modes take calls over: members, results, tables of names.

Keeps     none of it is imported before a program derives a class from Tensor or asks for it.
Touches   tensor.arguments.taken_over, which asks and calls.
Not here  torch.overrides' own names (flambeau/overrides.py)."""
