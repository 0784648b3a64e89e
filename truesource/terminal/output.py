"""Outputs of a command: tables on the terminal, the files that were asked for, and a last line that says what next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.grammar.support.atomic_files import remove_leftovers, write_json
from truesource.grammar.support.errors import InputError, require_extras
from truesource.grammar.support.files import FIGURES, digest_json, refuse_existing, refuse_occupied
from truesource.grammar.support.locks import Outputs, claimed, exclusive
from truesource.grammar.support.settings import option_name
from truesource.terminal.asked import STANDARD_OUTPUT, asked, require_ending
from truesource.terminal.console import echo, to_standard_output

if TYPE_CHECKING:
    from truesource.evaluation.show.table import ReportTable

_SCOPE: ContextVar[_Scope] = ContextVar("scope")
ENDINGS = {"figure": FIGURES, "table": (".csv", ".parquet")}  #: of files, by the last word of their option


@dataclass(frozen=True)
class _Scope:
    call: str
    stack: ExitStack


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


def claim_folder(folder: Path, what: str, mark: str, *, force: bool) -> None:
    """Claim a folder that this call makes.

    Args:
        folder: to make.
        what: in a word, what it will be.
        mark: name of a file that every such folder has.
        force: replace such a folder.

    Raises:
        InputError: it exists and is not empty, and ``force`` is false or it is something else; or another process is
            writing it.
    """
    hold(folder)
    remove_leftovers(folder)
    refuse_occupied(folder, force, what, mark)


def hold(folder: Path) -> None:
    """Keep other calls out of a folder that grows in its place, such as that of a run.

    Raises:
        InputError: another process is writing it.
    """
    _SCOPE.get().stack.enter_context(exclusive(folder))


class OutputFiles:
    """The files that a call writes besides what it prints, claimed before any work is done for them.

    Besides the files given, those of ``--table``: `show` keeps what it shows for them.

    Args:
        force: overwrite what exists.
        folder: besides the files, a folder of files.
        more: besides, files that no option names.
        shared: other jobs write the same files, so that this one claims none.
        files: by option; None: not asked for; ``-``: the standard output, for ``json``.

    Raises:
        InputError: as `truesource.terminal.output.claim_files`; a figure or a table of rows has no ending that names a
            format; or a figure is asked for, and the extra that draws it is not installed.
    """

    def __init__(
        self,
        *,
        force: bool,
        folder: Path | None = None,
        more: Sequence[Path] = (),
        shared: bool = False,
        **files: Path | None,
    ) -> None:
        if files.get("figure") is not None:
            require_extras("--figure", "report")
        self._files = {name: file for name, file in files.items() if file is not None}
        named = [file for file in (*more, *self._files.values(), *asked().tables) if file != STANDARD_OUTPUT]
        if shared:
            for file in named:
                refuse_existing(file, force)
        self._claimed = claim_files(*(() if shared else named), folder=folder, force=force)
        for name, file in self._files.items():
            if endings := ENDINGS.get(name.rpartition("_")[2]):
                require_ending(file, option_name(name), endings)

    @property
    def resumed(self) -> bool:
        """True if an earlier process of the same call was stopped before its end."""
        return self._claimed.resumed

    def write(self, **contents: Callable[[Path], None]) -> list[str]:
        """Write what was asked for, all or nothing, and the tables; the names of the files, in their order.

        Args:
            contents: by option, what writes the file.
        """
        return self.write_with(None, (), contents)

    def write_with(
        self, save: Callable[[], None] | None, saved: Sequence[Path], contents: Mapping[str, Callable[[Path], None]]
    ) -> list[str]:
        """Write the requested files together with others, all or nothing.

        Args:
            save: writes them.
            saved: their names, which are not among those returned.
            contents: as for `write`.
        """
        given = asked()
        writing = {file: contents[name] for name, file in self._files.items() if name in contents}
        if given.shown:
            writing |= dict.fromkeys(given.tables, tables_of(given.shown))
        with self._claimed.together(*saved):
            if save is not None:
                save()
            for file, write in writing.items():
                if file != STANDARD_OUTPUT:
                    write(file)
        for file, write in writing.items():
            if file == STANDARD_OUTPUT:
                to_standard_output(_text_of(write))
        given.written |= writing.keys()
        return [str(file) for file in writing if file != STANDARD_OUTPUT]

    def also(self, **contents: Callable[[Path], None]) -> str:
        """Write what was asked for; ``" and FILE"`` for each file, for a sentence on what was written; as `write`."""
        return "".join(f" and {file}" for file in self.write(**contents))

    def finish(self, then: str, *, folder: Path | None = None, **contents: Callable[[Path], None]) -> None:
        """Write what was asked for, and say what was written and what to do next.

        Args:
            then: the next command.
            folder: what is written already.
            contents: as `write`.
        """
        wrote = [*([] if folder is None else [str(folder)]), *self.write(**contents)]
        done = f"Wrote {' and '.join(wrote)}" if wrote else "Nothing written; --json FILE keeps these numbers"
        echo(f"{done}. Next: {then}")


def _text_of(write: Callable[[Path], None]) -> str:
    """The output as text."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        file = Path(folder) / "output.md"  # the format of a table
        write(file)
        return file.read_text(encoding="utf-8")


def json_of(records: object) -> Callable[[Path], None]:
    """Writes records as JSON."""

    def write(path: Path) -> None:

        write_json(path, records)

    return write


def figure_of(draw: Callable[[], str]) -> Callable[[Path], None]:
    """Writes a figure, drawn only where it is asked for, in the format that the ending of the file names."""

    def write(path: Path) -> None:
        from truesource.evaluation.show.figures import write_figure

        write_figure(path, draw, asked().figure_size)

    return write


def rows_of(rows: Callable[[], Sequence[Mapping[str, Any]]]) -> Callable[[Path], None]:
    """Writes rows as CSV or Parquet; they are made only where they are asked for."""

    def columns() -> Mapping[str, Any]:
        from truesource.evaluation.show.table_files import as_columns

        return as_columns(rows())

    return columns_of(columns)


def columns_of(columns: Callable[[], Mapping[str, Any]]) -> Callable[[Path], None]:
    """Writes columns of one length as CSV or Parquet; they are made only where they are asked for."""

    def write(path: Path) -> None:
        from truesource.evaluation.show.table_files import write_columns

        write_columns(path, columns())

    return write


def tables_of(tables: Sequence[ReportTable]) -> Callable[[Path], None]:
    """Writes tables in the format that the ending of the file names."""

    def write(path: Path) -> None:
        from truesource.evaluation.show.table_files import write_tables

        write_tables(path, tables)

    return write
