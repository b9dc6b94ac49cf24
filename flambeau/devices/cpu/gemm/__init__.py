"""Matrix products: our own, in one order of arithmetic on every CPU.

Keeps     the contract of bits in tile_text.py.
Touches   base.dtypes; nothing native until a plan's kernels are compiled.
Not here  running plans (runner), which operators are products (engine)."""

from flambeau.devices.cpu.gemm.plan import plan_product
from flambeau.devices.cpu.gemm.product import Operand, ProductPlan, ProductStep

__all__ = ["Operand", "ProductPlan", "ProductStep", "plan_product"]
