"""The compiler of all kernels: numba, whose cache then sees changes of other files, too."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function on its first call for each kind of arguments, and keep the result on disk.

    Numba compiles anew when the file of a kernel has changed. Of the kernels and named tuples that the file imports it
    knows nothing: changed kernels would stay as they were, and a named tuple that is gone is an error. So the name of
    the function, and with it that of its file in the cache, takes in what these other files contain.

    Args:
        function: it runs without the interpreter's lock.
        **options: of `numba.njit`.
    """
    if function is None:
        return partial(kernel, **options)
    function.__qualname__ += f"-{_digest(function.__module__)}"
    return njit(cache=True, nogil=True, **options)(function)


@cache
def _digest(module: str) -> str:
    """Of the files of the kernel modules that a module imports, directly or not."""
    sources = [Path(sys.modules[name].__file__ or "").read_bytes() for name in sorted(_imported(module, set()))]
    return hashlib.sha256(b"\0".join(sources)).hexdigest()[:8]


def _imported(module: str, known: set[str]) -> set[str]:
    """Adds the kernel modules that a module imports: as modules, or a kernel or class of them."""
    for value in list(vars(sys.modules[module]).values()):
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(name, str) and "._kernels." in name and name != module and name not in known:
            known.add(name)
            _imported(name, known)
    return known
