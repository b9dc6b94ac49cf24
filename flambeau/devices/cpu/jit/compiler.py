"""From LLVM text to images, by LLVM.

Keeps     a function that texts share is compiled once a process; one text at a time is in LLVM.
Touches   llvmlite, imported at the first text that is compiled; parts, layout.
Not here  which texts are compiled, and what is kept on disk (the package's own module)."""

from __future__ import annotations

import threading
from functools import cache
from importlib import import_module
from typing import Any, Final

from flambeau.base.config import CONFIG
from flambeau.devices.cpu.jit.image import Image
from flambeau.devices.cpu.jit.layout import image_of
from flambeau.devices.cpu.jit.object_file import ObjectFile
from flambeau.devices.cpu.jit.parts import Module

TRIPLE: Final = "x86_64-unknown-linux-gnu"
# Parts that are remembered; then all are forgotten.
_MAX_PARTS: Final = 1024

# Held while LLVM works, also for a caller that was interrupted and is gone.
_compiling = threading.RLock()
_machines: dict[int, Any] = {}
# (level of code generation, digest of a part) -> the object that has it.
_parts: dict[tuple[int, str], ObjectFile] = {}


def compiled_image(name: str, text: str) -> Image:
    """The image of a function that a module text defines."""
    with _compiling:
        level = CONFIG.codegen_level
        if len(_parts) > _MAX_PARTS:
            _parts.clear()
        module = Module(text)
        known = {
            function: _parts[level, digest]
            for function, digest in module.digests.items()
            if (level, digest) in _parts
        }
        made = ObjectFile(_emit(name, module.text_without(known)))
        for function, digest in module.digests.items():
            if function not in known:
                _parts[level, digest] = made
        return image_of(made, name, known)


def wait_until_idle() -> None:
    """Wait for LLVM's work of callers that are gone."""
    with _compiling:
        pass


def forget_lock() -> None:
    """In a child, where the thread that held the lock does not exist."""
    global _compiling
    _compiling = threading.RLock()


def _emit(name: str, text: str) -> bytes:
    machine = _machine()
    binding = _binding()
    header = f'target triple = "{TRIPLE}"\ntarget datalayout = "{machine.target_data}"\n'
    try:
        module = binding.parse_assembly(header + text)
        module.verify()
    except RuntimeError as error:
        raise RuntimeError(f"the text of kernel {name} is not LLVM: {error}\n{text}") from None
    with module:
        return bytes(machine.emit_object(module))


def _binding() -> Any:
    return import_module("llvmlite.binding")


@cache
def initialise() -> None:
    """Make LLVM ready to compile for this machine."""
    binding = _binding()
    # Process-wide and read when the first target machine is made. On loops written with explicit
    # vectors, loop strength reduction gains nothing for a third of code generation, and selecting
    # instructions one by one where LLVM can (it falls back to whole blocks) loses nothing for
    # another third.
    for option in ("-disable-lsr", "-fast-isel"):
        binding.set_option("", option)
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()


def _machine() -> Any:
    level = CONFIG.codegen_level
    machine = _machines.get(level)
    if machine is None:
        initialise()
        binding = _binding()
        machine = _machines[level] = binding.Target.from_triple(TRIPLE).create_target_machine(
            cpu=binding.get_host_cpu_name(),
            features=binding.get_host_cpu_features().flatten(),
            opt=level,
            reloc="pic",
            codemodel="small",
        )
    return machine
