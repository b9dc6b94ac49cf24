"""Names from before dtypes: FloatTensor and its kin, typed and untyped storages; copies of those.

Keeps     torch's names; programs of today need none of them.
Touches   nothing itself.
Not here  dtypes (base/dtypes.py), memory as the engine holds it (engine/storage.py)."""
