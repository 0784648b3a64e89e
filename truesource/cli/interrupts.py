"""Ctrl-C at any moment: once stops the command, twice leaves at once, and neither ends in a traceback."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

INTERRUPTED = 130  #: exit code
STOPPED = "truesource: stopped; what was finished is kept, run the same command again to go on"


def say(sentence: str) -> None:
    """Write a line to stderr, as far as there is one; needs no memory of imports, files or codecs to speak of."""
    try:
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # nobody listens any more
        return


class Interrupts:
    """While the block runs, the first Ctrl-C raises `KeyboardInterrupt` and the second ends the process.

    Where SIGINT is ignored or handled by somebody else, it stays so. An interrupt that arrives where Python cannot
    raise it, such as in a destructor during an import, ends the process too.
    """

    def __init__(self) -> None:
        self.count = 0
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        """Take the signal over."""
        ours = threading.current_thread() is threading.main_thread()
        if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._on_interrupt), sys.unraisablehook
            sys.unraisablehook = self._on_unraisable
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Give it back."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before[0])
            sys.unraisablehook = self._before[1]

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self.count > 1:
            self._leave()
        raise KeyboardInterrupt

    def _on_unraisable(self, unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            self._leave()
        self._before[1](unraisable)

    def _leave(self) -> None:
        say(STOPPED)
        os._exit(INTERRUPTED)  # nothing that could be interrupted again; the next call clears up, as after a kill
