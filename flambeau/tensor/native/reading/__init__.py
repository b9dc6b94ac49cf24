"""Reading tensors by native code: item(), numpy().

Keeps     Python's own functions (tensor/conversion.py) are what the calls mean, and take every call
          that is out of the ordinary.
Touches   nothing itself.
Not here  running what the tensor waits for (native/flush)."""
