"""What a command writes: claimed before it works, held until it ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_json, refuse_existing, remove_leftovers
from truesource.grammar.support.locks import Outputs, claimed, exclusive

if TYPE_CHECKING:
    from truesource.generator.corpus import Corpus


@dataclass(frozen=True)
class _Scope:
    call: str
    stack: ExitStack
    opened: dict[Path, Corpus] = field(default_factory=dict)


_SCOPE: ContextVar[_Scope] = ContextVar("scope")


@contextmanager
def call_scope(arguments: Sequence[str]) -> Iterator[None]:
    """One call of the command; what it claims is held until the block ends.

    Args:
        arguments: of the command; together with the working directory they say whether two calls are the same.
    """
    with ExitStack() as stack:
        token = _SCOPE.set(_Scope(digest_json([str(Path.cwd()), *arguments])[:16], stack))
        try:
            yield
        finally:
            _SCOPE.reset(token)


def opened(folder: Path) -> Corpus:
    """A corpus folder, which a call opens once.

    Raises:
        InputError: as `truesource.generator.corpus.Corpus.load`.
    """
    from truesource.generator.corpus import Corpus

    scope = _SCOPE.get(None)
    corpora = {} if scope is None else scope.opened
    if folder not in corpora:
        corpora[folder] = Corpus.load(folder)
    return corpora[folder]


def claim_files(*files: Path | None, folder: Path | None = None, force: bool) -> Outputs:
    """Claim the files that this call writes, before any work is done for them; None: a file not asked for.

    Args:
        files: to write.
        folder: besides, a folder of files.
        force: overwrite what exists.

    Raises:
        InputError: one exists (the folder: and is not empty), is not this very call's own, and ``force`` is false; a
            file is a folder, or cannot be written; or another process is writing one.
    """
    named = [file for file in files if file is not None]
    for file in named:
        if file.is_dir():
            raise InputError("this is a folder; name a file instead", file)
    scope = _SCOPE.get()
    targets = named if folder is None else [folder, *named]
    return scope.stack.enter_context(claimed(targets, scope.call, force=force))


def claim_folder(folder: Path, *, force: bool) -> None:
    """Claim a folder that this call makes.

    Raises:
        InputError: it exists, is not empty and ``force`` is false; or another process is writing it.
    """
    hold(folder)
    remove_leftovers(folder)
    refuse_existing(folder, force)


def hold(folder: Path) -> None:
    """Keep other calls out of a folder that grows in its place, such as that of a run.

    Raises:
        InputError: another process is writing it.
    """
    _SCOPE.get().stack.enter_context(exclusive(folder))
