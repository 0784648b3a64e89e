"""Outputs of a command: tables on the terminal, requested files, and a last line that says what to do next."""

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
from truesource.terminal.console import echo, to_standard_output
from truesource.terminal.requests import STANDARD_OUTPUT, output_request, require_ending

if TYPE_CHECKING:
    from truesource.evaluation.show.table import ReportTable

_SCOPE: ContextVar[_Scope] = ContextVar("scope")
ENDINGS = {"figure": FIGURES, "table": (".csv", ".parquet")}  #: endings of files, by the last word of their option


@dataclass(frozen=True)
class _Scope:
    call: str
    stack: ExitStack


@contextmanager
def call_scope(arguments: Sequence[str]) -> Iterator[None]:
    """Open the scope of one call of the command; claims are held until the block ends.

    Args:
        arguments: arguments of the command; with the working directory, they decide if two calls are the same.
    """
    with ExitStack() as stack:
        token = _SCOPE.set(_Scope(digest_json([str(Path.cwd()), *arguments])[:16], stack))
        try:
            yield
        finally:
            _SCOPE.reset(token)


def claim_files(*files: Path | None, folder: Path | None = None, force: bool) -> Outputs:
    """Claim the files that this call writes, before any work is done; None: a file that is not requested.

    Args:
        files: files to write.
        folder: a folder to write too.
        force: overwrite existing files.

    Raises:
        InputError: one exists (the folder: and is not empty), is not from the same call, and ``force`` is false; a
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
    """Claim a folder that this call writes.

    Args:
        folder: the folder.
        what: kind of folder, for messages.
        mark: name of a file that every folder of this kind has.
        force: replace a folder of this kind.

    Raises:
        InputError: it exists and is not empty, and ``force`` is false or it is of another kind; or another process is
            writing it.
    """
    hold(folder)
    remove_leftovers(folder)
    refuse_occupied(folder, force, what, mark)


def hold(folder: Path) -> None:
    """Lock a folder that is written in place, such as the folder of a run, against other calls.

    Raises:
        InputError: another process is writing the folder.
    """
    _SCOPE.get().stack.enter_context(exclusive(folder))


class OutputFiles:
    """The files that a call writes, claimed before any work is done.

    They include the files of ``--table``; `show` collects the tables for them.

    Args:
        force: overwrite existing files.
        folder: a folder to write too.
        more: further files without an option.
        shared: other jobs write the same files, so this job does not claim them.
        files: files by option; None: not requested; ``-``: the standard output, for ``json``.

    Raises:
        InputError: see `truesource.terminal.output.claim_files`; a figure or a table has no ending of a supported
            format; or a figure is requested, and the extra that draws it is not installed.
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
        named = [file for file in (*more, *self._files.values(), *output_request().tables) if file != STANDARD_OUTPUT]
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
        """Write the requested files and tables, all or nothing; return the names of the files in order.

        Args:
            contents: functions that write the files, by option.
        """
        return self.write_with(None, (), contents)

    def write_with(
        self, save: Callable[[], None] | None, saved: Sequence[Path], contents: Mapping[str, Callable[[Path], None]]
    ) -> list[str]:
        """Write the requested files together with others, all or nothing.

        Args:
            save: function that writes the others.
            saved: names of the others, which are not returned.
            contents: see `write`.
        """
        request = output_request()
        writing = {file: contents[name] for name, file in self._files.items() if name in contents}
        if request.shown_tables:
            writing |= dict.fromkeys(request.tables, tables_of(request.shown_tables))
        with self._claimed.together(*saved):
            if save is not None:
                save()
            for file, write in writing.items():
                if file != STANDARD_OUTPUT:
                    write(file)
        for file, write in writing.items():
            if file == STANDARD_OUTPUT:
                to_standard_output(_text_of(write))
        request.written |= writing.keys()
        return [str(file) for file in writing if file != STANDARD_OUTPUT]

    def also(self, **contents: Callable[[Path], None]) -> str:
        """Write the requested files like `write`, and return ``" and FILE"`` for each, for a sentence."""
        return "".join(f" and {file}" for file in self.write(**contents))

    def finish(self, then: str, *, folder: Path | None = None, **contents: Callable[[Path], None]) -> None:
        """Write the requested files, and print what was written and what to do next.

        Args:
            then: the next command.
            folder: a folder that is already written.
            contents: see `write`.
        """
        wrote = [*([] if folder is None else [str(folder)]), *self.write(**contents)]
        done = f"Wrote {' and '.join(wrote)}" if wrote else "Nothing written; --json FILE saves these numbers"
        echo(f"{done}. Next: {then}")


def _text_of(write: Callable[[Path], None]) -> str:
    """Return the output as text."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        file = Path(folder) / "output.md"  # the format of a table
        write(file)
        return file.read_text(encoding="utf-8")


def json_of(records: object) -> Callable[[Path], None]:
    """Return a function that writes records as JSON."""

    def write(path: Path) -> None:

        write_json(path, records)

    return write


def figure_of(draw: Callable[[], str]) -> Callable[[Path], None]:
    """Return a function that draws a figure and writes it in the format of the file ending."""

    def write(path: Path) -> None:
        from truesource.evaluation.show.figures import write_figure

        write_figure(path, draw, output_request().figure_size)

    return write


def rows_of(rows: Callable[[], Sequence[Mapping[str, Any]]]) -> Callable[[Path], None]:
    """Return a function that computes rows and writes them as CSV or Parquet."""

    def columns() -> Mapping[str, Any]:
        from truesource.evaluation.show.table_files import as_columns

        return as_columns(rows())

    return columns_of(columns)


def columns_of(columns: Callable[[], Mapping[str, Any]]) -> Callable[[Path], None]:
    """Return a function that computes columns of one length and writes them as CSV or Parquet."""

    def write(path: Path) -> None:
        from truesource.evaluation.show.table_files import write_columns

        write_columns(path, columns())

    return write


def tables_of(tables: Sequence[ReportTable]) -> Callable[[Path], None]:
    """Return a function that writes tables in the format of the file ending."""

    def write(path: Path) -> None:
        from truesource.evaluation.show.table_files import write_tables

        write_tables(path, tables)

    return write
