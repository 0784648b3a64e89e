"""Read ``.npz`` files; kind, shape and size of their arrays are checked before memory is allocated."""

from __future__ import annotations

import math
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import check_unpacked_size, refuse_device

#: errors of a damaged archive; the last two if a header bit means "encrypted" or "another method"
_UNREADABLE = (
    *(OSError, EOFError, KeyError, TypeError, ValueError, OverflowError, SyntaxError, tokenize.TokenError),
    *(zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError),
)
_HEADER_LIMIT = 10_000  #: most bytes of the header of an array
_CHUNK = 2**18


@dataclass(frozen=True)
class ArrayKind:
    """Requirements of an array: its kinds as in `numpy.dtype.kind`, and its shape; None for any size."""

    kinds: str
    shape: tuple[int | None, ...]

    def refusal(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> str | None:
        """Return what is wrong with an array; None if it fits."""
        if dtype.kind not in self.kinds:
            return f"it holds values of type {dtype}"
        fits = len(shape) == len(self.shape) and all(n in (None, k) for n, k in zip(self.shape, shape, strict=True))
        return None if fits else f"it has the shape {shape}"


FLOATS = ArrayKind("f", (None,))  #: (n,) real numbers
BYTES = ArrayKind("u", (None,))  #: (n,) bytes
TEXT = ArrayKind("U", ())  #: one string


def integers(columns: int | None = None) -> ArrayKind:
    """Return the requirements of integers (n,) or (n, ``columns``)."""
    return ArrayKind("iu", (None,) if columns is None else (None, columns))


def read_arrays(
    path: str | Path, kinds: Mapping[str, ArrayKind], *, what: str = "this file", remedy: str, others: bool = True
) -> dict[str, NDArray[Any]]:
    """Read some arrays of an ``.npz`` file.

    Args:
        path: the file.
        kinds: requirements of each array, by name.
        what: name of the file in messages.
        remedy: end of messages, such as ``"train the model again"``.
        others: ignore arrays of other names; False: refuse them.

    Returns:
        The arrays by name, in the byte order of the machine.

    Raises:
        InputError: the file is missing or damaged, lacks an array, has one of another kind or shape, or unpacks to far
            more than its size (see `truesource.grammar.support.files.check_unpacked_size`).
    """
    path = Path(path)
    refuse_device(path)
    try:
        with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            unknown = sorted({member.filename for member in archive.infolist()} - {f"{name}.npy" for name in kinds})
            if unknown and not others:
                raise InputError(f"it has an unknown array {unknown[0].removesuffix('.npy')}")
            members = {name: _member(archive, name) for name in kinds}
            check_unpacked_size(sum(member.file_size for member in members.values()), path)
            return {name: _read(archive, member, name, kinds[name]) for name, member in members.items()}
    except FileNotFoundError as error:
        raise InputError(f"{what} is missing; {remedy}", path, code="missing") from error
    except InputError as error:
        if error.path is not None:
            raise
        raise InputError(f"{what} is damaged: {error.reason}; {remedy}", path, code="damaged") from error
    except _UNREADABLE as error:
        raise InputError(f"{what} is damaged; {remedy}", path, code="damaged") from error


def _member(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    result = [member for member in archive.infolist() if member.filename == f"{name}.npy"]
    if len(result) != 1:
        raise InputError(f"it has no array {name}" if not result else f"it has the array {name} more than once")
    return result[0]


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, kind: ArrayKind) -> NDArray[Any]:
    with archive.open(member) as stream:
        shape, fortran, dtype = _header(stream)
        if (refusal := kind.refusal(dtype, shape)) is not None:
            raise InputError(f"the array {name} is not as expected, {refusal}")
        count = math.prod(shape)
        if count * dtype.itemsize != member.file_size - stream.tell():
            raise InputError(f"the array {name} has a size other than in its header")
        array: NDArray[Any] = np.empty(count, dtype=dtype)
        _fill(stream, array)
    array = array.reshape(shape, order="F" if fortran else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)


def _fill(stream: IO[bytes], array: NDArray[Any]) -> None:
    """Fill ``array`` from a stream, up to its end, where the checksum is compared."""
    buffer = array.view(np.uint8) if array.dtype.itemsize else np.empty(0, dtype=np.uint8)
    done = 0
    while chunk := stream.read(_CHUNK):
        buffer[done : done + len(chunk)] = np.frombuffer(chunk, dtype=np.uint8)
        done += len(chunk)
    if done != len(buffer):
        raise EOFError("an array is cut short")


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(stream)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise InputError(f"its arrays are of format {version[0]}.{version[1]}, which is not supported")
    with warnings.catch_warnings():  # numpy warns of headers that it repairs
        warnings.simplefilter("ignore")
        header: tuple[tuple[int, ...], bool, np.dtype[Any]] = readers[version](stream, max_header_size=_HEADER_LIMIT)
    return header
