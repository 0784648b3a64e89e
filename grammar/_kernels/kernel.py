"""The compiler of all kernels: numba, whose cache then sees changes of other files, too."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from stat import S_IMODE
from types import ModuleType
from typing import Any

import numba

log = logging.getLogger("truesource.grammar")


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function on its first call for each kind of arguments, and keep the result on disk.

    Numba compiles anew when the file of a kernel has changed. Of the kernels and named tuples that the file imports it
    knows nothing: changed kernels would stay as they were, and a named tuple that is gone is an error. So the name of
    the function, and with it that of its file in the cache, takes in what these other files contain.

    A constant in a call between kernels is an argument like any other. Numba would compile the called kernel for the
    value of an integer or a bool, and again for the type; that took a third of all compilation.

    Args:
        function: it runs without the interpreter's lock.
        **options: of `numba.njit`.
    """
    if function is None:
        return partial(kernel, **options)
    function.__qualname__ += f"-{_digest(function.__module__)}"
    compiled = partial(numba.njit, nogil=True, no_cfunc_wrapper=True, **options)
    try:
        dispatcher = compiled(cache=True)(function)
    except RuntimeError:  # numba found no folder that it may write to
        dispatcher = compiled(cache=_private_cache())(function)
    resolve = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, kws: resolve(tuple(map(numba.types.unliteral, args)), kws)
    return dispatcher


@cache
def _private_cache() -> bool:
    """Give numba a folder below TMPDIR that only this user can read and write; whether there is one.

    What lies there is executed, so a folder that somebody else made, or may write to, is not used.
    """
    why = "neither the installation nor a cache folder below $HOME can be written"
    try:
        folder = Path(tempfile.gettempdir()) / f"truesource-kernels-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        private = status.st_uid == os.getuid() and S_IMODE(status.st_mode) == 0o700 and not folder.is_symlink()
    except OSError:
        private = False
    if private:
        log.warning("compiled kernels are kept in %s, since %s (NUMBA_CACHE_DIR names another folder)", folder, why)
        os.environ["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR = str(folder)  # of worker processes, too
    else:
        log.warning("kernels are compiled at every call, since %s; set NUMBA_CACHE_DIR to a folder that can be", why)
    return private


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
