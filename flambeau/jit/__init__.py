"""torch.jit: what is scripted or traced is what it was, since everything is compiled as it runs.

Keeps     a function or module comes back as itself: the same results, control flow as written.
Touches   nn.modules.
Not here  compilation (engine, codegen); files of scripted modules, which are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from flambeau.base.errors import helped
from flambeau.base.missing import module_getattr
from flambeau.jit.futures import Future
from flambeau.nn.modules.module import Module

__all__ = [
    "Attribute", "Error", "Final", "Future", "ScriptModule", "TracerWarning", "annotate",
    "export", "fork", "freeze", "ignore", "is_scripting", "is_tracing", "isinstance", "load",
    "optimize_for_inference", "save", "script", "script_if_tracing", "script_method", "trace",
    "trace_module", "unused", "wait",
]  # fmt: skip


class Error(RuntimeError):
    """What a scripted function raised."""


class TracerWarning(Warning):
    """What tracing may get wrong: nothing is traced, so it is never given."""


class ScriptModule(Module):
    """A module whose methods would be scripted."""


class Attribute:
    """A value with the type that a script would need."""

    def __init__(self, value: Any, type: Any) -> None:
        self.value = value
        self.type = type


def script(obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None,
           example_inputs: Any = None) -> Any:  # fmt: skip
    """The function, class or module itself.

    >>> script(len) is len
    True
    """
    return obj


def _same(obj: Any) -> Any:
    return obj


def script_method(fn: Any) -> Any:
    """The method itself."""
    return fn


def script_if_tracing(fn: Any) -> Any:
    """The function itself."""
    return fn


_script_if_tracing = script_if_tracing


def export(fn: Any) -> Any:
    """The method itself."""
    return fn


def unused(fn: Any) -> Any:
    """The method itself."""
    return fn


def _overload(func: Any) -> Any:
    """The function itself: a script would take its annotations for one of several signatures."""
    return func


_overload_method = _overload


def ignore(drop: Any = False, **named: Any) -> Any:
    """The method itself, or a decorator that gives it back."""
    return drop if callable(drop) else _same


def trace(func: Any, example_inputs: Any = None, *arguments: Any, **named: Any) -> Any:
    """The function or module itself, run once on the example as torch does."""
    if example_inputs is not None:
        given = example_inputs if type(example_inputs) in (tuple, list) else (example_inputs,)
        func(*given)
    return func


def trace_module(mod: Any, inputs: dict[str, Any], *arguments: Any, **named: Any) -> Any:
    """The module itself, its methods run once on their examples."""
    for name, example in inputs.items():
        getattr(mod, name)(*(example if type(example) in (tuple, list) else (example,)))
    return mod


def freeze(mod: Any, preserved_attrs: Any = None, optimize_numerics: bool = True) -> Any:
    """The module itself; it must be in evaluation mode."""
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call "
            ".eval() on your module before freezing."
        )
    return mod


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """The module itself."""
    return mod


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """isinstance, for types with parameters too: their origin is compared."""
    import builtins
    from typing import get_args, get_origin

    origin = get_origin(target_type)
    if origin is None:
        return builtins.isinstance(obj, target_type)
    if not builtins.isinstance(origin, type):  # Union, Optional
        return any(isinstance(obj, each) for each in get_args(target_type))
    return builtins.isinstance(obj, origin)


def is_scripting() -> bool:
    """Whether a script is running: no."""
    return False


def is_tracing() -> bool:
    """Whether a trace is being made: no."""
    return False


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """Call the function: kernels use all threads already."""
    made: Future[Any] = Future()
    made.set_result(func(*args, **kwargs))
    return made


def wait(future: Future[Any]) -> Any:
    """The value of a future."""
    return future.wait()


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Raises: there are no files of scripted modules."""
    raise RuntimeError(
        helped(
            "torch.jit.save: flambeau writes no files of scripted modules",
            given=f"a {type(m).__name__}",
            fix="torch.save(module.state_dict(), path), and load_state_dict into the same class",
        )
    )


def load(f: Any, map_location: Any = None, _extra_files: Any = None, **named: Any) -> Any:
    """Raises: a scripted module's file holds code, which is never run."""
    raise RuntimeError(
        helped(
            "torch.jit.load: flambeau reads no files of scripted modules",
            given=f"{f!r}",
            fix="save the module's state_dict() from PyTorch, and load_state_dict into its class",
        )
    )


__getattr__ = module_getattr(__name__)
