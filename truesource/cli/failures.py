"""Failures of the machine (disk, memory, open files, threads, a pipe) as one sentence with a remedy.

This module is imported before anything fails, and imports nothing later: where no file can be opened any more, the
sentence still comes out.
"""

from __future__ import annotations

import encodings.ascii
import encodings.cp437
import encodings.idna
import encodings.latin_1
import encodings.utf_8
import encodings.utf_8_sig  # noqa: F401 - a codec that is looked up first in need cannot be imported then
import errno
import os
from collections.abc import Iterator

AGAIN = "then run the same command again"
_MEMORY = "not enough memory; use fewer --workers, a smaller input or smaller batches, or a machine with more memory"
_THREADS = f"no more threads or processes can be started; raise the limit (ulimit -u) or use fewer --workers, {AGAIN}"
_FILES = f"too many open files; raise the limit (ulimit -n) or use fewer --workers, {AGAIN}"

#: what the machine ran out of, by error number; elsewhere than on top of a chain of errors, these alone are its cause
_SHORT_OF = {
    errno.ENOSPC: f"no space left on the disk; free some space, {AGAIN}",
    errno.EDQUOT: f"the disk quota is used up; free some space, {AGAIN}",
    errno.EFBIG: f"a file would be larger than the limit; raise the limit (ulimit -f), {AGAIN}",
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.ENOMEM: _MEMORY,
    errno.EAGAIN: _THREADS,
    errno.EROFS: "the file system is read-only; choose another place",
    errno.EIO: f"the disk reports an error; check it, {AGAIN}",
}
_REFUSED = {
    errno.EACCES: "permission denied; change the permissions or choose another place",
    errno.EPERM: "operation not permitted; change the permissions or choose another place",
    errno.EPIPE: "the program that read the output has ended, so the rest of it is missing; run the command again",
}
#: what libraries that raise errors of their own say of the same
_TEXTS = {
    **{os.strerror(number).lower(): sentence for number, sentence in _SHORT_OF.items()},
    "can't start new thread": _THREADS,
    "out of memory": _MEMORY,
    "can't allocate memory": _MEMORY,
    "std::bad_alloc": _MEMORY,
    "unable to allocate": _MEMORY,
    "failed to map segment": _MEMORY,
    "cannot enable executable": _MEMORY,
    "error return without exception set": _MEMORY,  # of Python 3.11, where it has none for a call
}


def explain(error: BaseException) -> str | None:
    """One sentence: what the machine refused, what to do, and the path; None: the error is of another kind."""
    for number, cause in enumerate(_causes(error)):
        sentence = _sentence(cause, top=number == 0)
        if sentence is not None:
            return sentence
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and the ones it was raised from, or while they were handled."""
    seen: set[int] = set()
    left: BaseException | None = error
    while left is not None and id(left) not in seen:
        seen.add(id(left))
        yield left
        left = left.__cause__ or (None if left.__suppress_context__ else left.__context__)


def _sentence(error: BaseException, *, top: bool) -> str | None:
    if isinstance(error, MemoryError):
        return _MEMORY
    if isinstance(error, OSError):
        known = _SHORT_OF.get(error.errno or 0) or (_REFUSED.get(error.errno or 0) if top else None)
        if known is None and top:
            known = error.strerror or str(error) or type(error).__name__
        return None if known is None else known + _place(error)
    if isinstance(error, Exception):
        text = str(error).lower()
        return next((sentence for mark, sentence in _TEXTS.items() if mark in text), None)
    return None


def _place(error: OSError) -> str:
    names = [str(name) for name in (error.filename, error.filename2) if isinstance(name, str | os.PathLike)]
    return f" ({' -> '.join(names)})" if names else ""
