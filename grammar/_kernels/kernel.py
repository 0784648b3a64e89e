"""The compiler of all kernels, and kernels that many use: arrays that grow, and arithmetic on numbers side by side.

The compiler is numba, whose cache then sees changes of other files, too. Numba unrolls a short inner loop into
operations on single numbers, so arithmetic on `WIDTH` numbers, one vector operation each, is written in the compiler's
own terms. Arrays are flat, contiguous and of one floating-point type; positions are those of the first of the `WIDTH`
entries. Products are rounded before they are added, so every processor finds the same numbers.
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
WIDTH = 8  #: numbers side by side: one or two registers of the processor


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
    """Digest of the files of the kernel modules that a module imports, directly or not."""
    sources = [Path(sys.modules[name].__file__ or "").read_bytes() for name in sorted(_imported(module, set()))]
    return hashlib.sha256(b"\0".join(sources)).hexdigest()[:8]


def _imported(module: str, known: set[str]) -> set[str]:
    """Adds the kernel modules that a module imports: as modules, or a kernel or class of them."""
    for value in list(vars(sys.modules[module]).values()):
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(name, str) and "._kernels" in name and name != module and name not in known:
            known.add(name)
            _imported(name, known)
    return known


Array = Any  # numpy arrays of any type


@kernel
def copy(target: Array, at: int, values: Array, low: int, high: int) -> None:
    """``values[low:high]`` to ``target`` from ``at`` on; a loop, since slices take long to compile."""
    for i in range(high - low):
        target[at + i] = values[low + i]


@kernel
def room(array: Array, needed: int) -> Array:
    """``array``, or a copy at least twice as long when ``needed`` entries do not fit."""
    if needed <= len(array):
        return array
    larger = np.empty(max(needed, 2 * len(array)), dtype=array.dtype)
    copy(larger, 0, array, 0, len(array))
    return larger


def _place(context: Any, builder: Any, kind: Any, array: Any, position: Any) -> tuple[Any, int]:
    """Return where `WIDTH` entries of an array begin, as a pointer to a vector, and the bytes of one entry."""
    item = context.get_data_type(kind.dtype)
    size = context.get_abi_sizeof(item)
    data = context.make_array(kind)(context, builder, array).data
    offset = builder.mul(position, position.type(size))
    return pointer_add(builder, data, offset, ir.VectorType(item, WIDTH).as_pointer()), size


@intrinsic
def add_products(_: Any, total: Any, t: Any, x: Any, i: Any, y: Any, j: Any) -> Any:
    """``total[t + w] += x[i + w] * y[j + w]`` in every lane w."""

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
    """``total[t + w] += weight * x[i + w]`` in every lane w."""

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
    """The place of the lowest bit that is set in a whole number, which is not 0."""

    def codegen(_: Any, builder: Any, __: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


@intrinsic
def n_bits(_: Any, bits: Any) -> Any:
    """Return how many bits of a whole number are set."""

    def codegen(_: Any, builder: Any, __: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.int64), codegen


@kernel
def width():
    """`WIDTH`, as kernels take it: so that their cache sees it change."""
    return WIDTH
