"""Compiler of all kernels, and kernels that many use: growing arrays, and arithmetic on adjacent numbers.

The compiler is numba, with a cache that also notices changes of imported kernel files. Numba unrolls a short inner loop
into operations on single numbers, so arithmetic on `WIDTH` numbers, one vector operation each, is written as compiler
intrinsics. Arrays are flat, contiguous and of one floating-point type; a position is the index of the first of `WIDTH`
entries. Products are rounded before they are added, so every processor computes the same numbers.
"""

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
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.cgutils import pointer_add
from numba.extending import intrinsic

log = logging.getLogger("truesource.grammar")
WIDTH = 8  #: adjacent numbers in one operation: one or two registers of the processor


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function on its first call for each combination of argument types, and cache the result on disk.

    Numba recompiles when the file of a kernel has changed, but not when an imported kernel or named tuple has: changed
    kernels would stay as they were, and a removed named tuple would raise an error. So the name of the function, and
    hence the name of its cache file, includes a digest of the imported files.

    A constant in a call between kernels is treated as an argument like any other. Otherwise numba would compile the
    called kernel for the value of an integer or a bool, and again for the type; that took a third of all compilation.
    A kernel whose name begins with an underscore is for other kernels. Code that lets Python call it would be a sixth
    of all compilation, and is left out: a call from Python is a `TypeError`.

    Args:
        function: runs without the interpreter's lock.
        **options: options of `numba.njit`.
    """
    if function is None:
        return partial(kernel, **options)
    function.__qualname__ += f"-{_digest(function.__module__)}"
    inner = function.__name__.startswith("_")
    compiled = partial(numba.njit, nogil=True, no_cfunc_wrapper=True, no_cpython_wrapper=inner, **options)
    try:
        dispatcher = compiled(cache=True)(function)
    except RuntimeError:  # numba has no writable folder
        dispatcher = compiled(cache=_private_cache())(function)
    if inner:
        dispatcher.add_overload = partial(_keep, dispatcher.overloads)
        dispatcher._compile_for_args = partial(_refuse, function.__name__)
    resolve = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, kws: resolve(tuple(map(numba.types.unliteral, args)), kws)
    return dispatcher


def _keep(overloads: dict[Any, Any], compiled: Any) -> None:
    """Keep a compiled version for kernels, hidden from calls of Python, which would jump to nowhere."""
    overloads[tuple(compiled.signature.args)] = compiled


def _refuse(name: str, *_: Any, **__: Any) -> None:
    raise TypeError(f"the kernel {name} is called by kernels alone; rename it without the underscore to call it")


@cache
def _private_cache() -> bool:
    """Give numba a cache folder below TMPDIR that only this user can read and write; return True if there is one.

    Code in the folder is executed, so a folder that another user owns, or may write to, is not used.
    """
    why = "neither the installation nor a cache folder below $HOME is writable"
    try:
        folder = Path(tempfile.gettempdir()) / f"truesource-kernels-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        private = status.st_uid == os.getuid() and S_IMODE(status.st_mode) == 0o700 and not folder.is_symlink()
    except OSError:
        private = False
    if private:
        log.warning("compiled kernels are cached in %s, because %s; NUMBA_CACHE_DIR sets another folder", folder, why)
        os.environ["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR = str(folder)  # of worker processes, too
    else:
        log.warning("each process compiles all kernels, because %s; set NUMBA_CACHE_DIR to a writable folder", why)
    return private


@cache
def _digest(module: str) -> str:
    """Return the digest of the files of the kernel modules that a module imports, directly or indirectly."""
    sources = [Path(sys.modules[name].__file__ or "").read_bytes() for name in sorted(_imported(module, set()))]
    return hashlib.sha256(b"\0".join(sources)).hexdigest()[:8]


def _imported(module: str, modules: set[str]) -> set[str]:
    """Add to ``modules`` the kernel modules that a module imports, as modules or by a kernel or class of theirs."""
    for value in list(vars(sys.modules[module]).values()):
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(name, str) and "._kernels" in name and name != module and name not in modules:
            modules.add(name)
            _imported(name, modules)
    return modules


Array = Any  # numpy arrays of any type


@kernel
def copy(target: Array, at: int, values: Array, low: int, high: int) -> None:
    """Copy ``values[low:high]`` to ``target`` from ``at`` on, in a loop, since slices take long to compile."""
    for i in range(high - low):
        target[at + i] = values[low + i]


@kernel
def room(array: Array, needed: int) -> Array:
    """Return ``array``, or a copy of it that is at least twice as long if ``needed`` entries do not fit."""
    if needed <= len(array):
        return array
    larger = np.empty(max(needed, 2 * len(array)), dtype=array.dtype)
    copy(larger, 0, array, 0, len(array))
    return larger


def _place(context: Any, builder: Any, kind: Any, array: Any, position: Any) -> tuple[Any, int]:
    """Return a vector pointer to `WIDTH` entries of an array, and the size of one entry in bytes."""
    item = context.get_data_type(kind.dtype)
    size = context.get_abi_sizeof(item)
    data = context.make_array(kind)(context, builder, array).data
    offset = builder.mul(position, position.type(size))
    return pointer_add(builder, data, offset, ir.VectorType(item, WIDTH).as_pointer()), size


@intrinsic
def add_products(_: Any, total: Any, t: Any, x: Any, i: Any, y: Any, j: Any) -> Any:
    """Compute ``total[t + w] += x[i + w] * y[j + w]`` in every lane w."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        target, size = _place(context, builder, kinds[0], args[0], args[1])
        first, _ = _place(context, builder, kinds[2], args[2], args[3])
        second, _ = _place(context, builder, kinds[4], args[4], args[5])
        product = builder.fmul(builder.load(first, align=size), builder.load(second, align=size))
        summed = builder.fadd(builder.load(target, align=size), product)
        builder.store(summed, target, align=size)
        return context.get_dummy_value()

    place = types.intp
    return types.void(total, place, x, place, y, place), codegen


@intrinsic
def add_scaled(_: Any, total: Any, t: Any, weight: Any, x: Any, i: Any) -> Any:
    """Compute ``total[t + w] += weight * x[i + w]`` in every lane w."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        target, size = _place(context, builder, kinds[0], args[0], args[1])
        source, _ = _place(context, builder, kinds[3], args[3], args[4])
        lanes = ir.VectorType(context.get_data_type(kinds[0].dtype), WIDTH)
        one = builder.insert_element(lanes(ir.Undefined), args[2], ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        weights = builder.shuffle_vector(one, lanes(ir.Undefined), zeros)
        product = builder.fmul(weights, builder.load(source, align=size))
        summed = builder.fadd(builder.load(target, align=size), product)
        builder.store(summed, target, align=size)
        return context.get_dummy_value()

    return types.void(total, types.intp, total.dtype, x, types.intp), codegen


@intrinsic
def lowest_bit(_: Any, bits: Any) -> Any:
    """Return the index of the lowest set bit of an integer other than 0."""

    def codegen(_: Any, builder: Any, __: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


@intrinsic
def n_bits(_: Any, bits: Any) -> Any:
    """Return the number of set bits of an integer."""

    def codegen(_: Any, builder: Any, __: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.int64), codegen


@kernel
def width():
    """Return `WIDTH` as a kernel, so that the cache of its callers notices a change."""
    return WIDTH
