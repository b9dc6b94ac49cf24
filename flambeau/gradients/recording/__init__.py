"""Recording: results get their history as operators are called, write in place or view.

Keeps     what an operator's gradient needs is worked out once an operator, not once a call.
Touches   nothing itself.
Not here  the graph that is made (graph.py), running it (backward.py)."""
