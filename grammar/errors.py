"""The one kind of error that is the user's to mend."""

from __future__ import annotations

from pathlib import Path

from truesource.grammar.printable import one_line


class InputError(ValueError):
    """Something that was given (a file, a setting, a grammar) cannot be used.

    The message is one sentence: what is wrong and what to do. With ``path`` (and ``line``, counted
    from 1) it ends in ``(path:line)``. Control characters of what it quotes are escaped.
    The command prints it without a traceback and exits with 2.
    """

    def __init__(self, message: str, path: str | Path | None = None, line: int | None = None) -> None:
        where = "" if path is None else f" ({path})" if line is None else f" ({path}:{line})"
        super().__init__(one_line(message + where))
        self.reason = one_line(message)  #: the message without the place
        self.path = path
        self.line = line


class NothingToMeasureError(InputError):
    """A measure is not defined on what was given: no pairs, one label, no sentence that both sides can make.

    A command refuses it as any `InputError`. In a run, which holds more than this measure, it is a note in the report.
    ``code`` says what is missing, and stays the same when the sentence is worded anew.
    """

    def __init__(self, message: str, code: str, path: str | Path | None = None) -> None:
        super().__init__(message, path)
        self.code = code
