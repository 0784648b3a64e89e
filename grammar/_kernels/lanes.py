"""Kernels: arithmetic on `WIDTH` numbers side by side, one vector operation each.

Numba unrolls a short inner loop into operations on single numbers, so these are written in the compiler's own terms.
Arrays are flat, contiguous and of one floating-point type; positions are those of the first of the `WIDTH` entries.
Products are rounded before they are added, so every processor finds the same numbers.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import pointer_add
from numba.extending import intrinsic

from truesource.grammar._kernels.kernel import kernel

WIDTH = 8  #: numbers side by side: one or two registers of the processor


def _place(context: Any, builder: Any, kind: Any, array: Any, position: Any) -> tuple[Any, int]:
    """Where `WIDTH` entries of an array begin, as a pointer to a vector, and the bytes of one entry."""
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


@kernel
def width():
    """`WIDTH`, as kernels take it: so that their cache sees it change."""
    return WIDTH
