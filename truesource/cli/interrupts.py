"""Ctrl-C and SIGTERM at any moment: once stops the command, twice leaves at once, and neither ends in a traceback."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

INTERRUPTED = 130  #: exit code after Ctrl-C, and of `typer` after any `KeyboardInterrupt`
STOPPED = "truesource: stopped; what was finished is kept, run the same command again to go on"
_BEFORE: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}  #: of signals


def say(sentence: str) -> None:
    """Write a line to stderr, as far as there is one; needs no memory of imports, files or codecs to speak of."""
    try:
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # nobody listens any more
        return


class Interrupts:
    """While the block runs, the first Ctrl-C or SIGTERM raises `KeyboardInterrupt` and the second ends the process.

    The exception carries the number of the signal. Where a signal is ignored or handled by somebody else, it stays so.
    One that arrives where Python cannot raise it, such as in a destructor during an import, ends the process too. So
    does one after the block, where exit handlers run, in silence: all has been said by then.
    """

    def __init__(self) -> None:
        self.count = 0
        self._code: int | None = None  #: exit code, once a signal has come or the block has ended
        self._ended, self._process, self._hook = False, os.getpid(), sys.unraisablehook

    def __enter__(self) -> Interrupts:
        """Take the signals over."""
        if threading.current_thread() is threading.main_thread():
            for number, default in _BEFORE.items():
                before = signal.getsignal(number)
                if before is default or isinstance(getattr(before, "__self__", None), Interrupts):
                    signal.signal(number, self._on_signal)
            sys.unraisablehook = self._on_unraisable
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Keep the signals until the process ends."""
        code = error.code if isinstance(error, SystemExit) else None
        self._code, self._ended = (code if isinstance(code, int) else int(code is not None)), True
        sys.unraisablehook = self._hook

    def exit_code(self, error: BaseException) -> int | None:
        """128 and the number of the signal that stopped the call; None: none did.

        Args:
            error: that ended the call. An interrupted import or library may raise anything.
        """
        link: BaseException | None = error
        while self._code is None and link is not None:
            if isinstance(link, KeyboardInterrupt):  # of somebody else's handler
                self._code = 128 + (link.args[0] if link.args else signal.SIGINT)
            link = link.__cause__
        return self._code

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a fork, such as a worker process: as if nobody handled the signal
            signal.signal(number, _BEFORE[number])
            signal.raise_signal(number)
            return
        self.count += 1
        if self._code is None:
            self._code = 128 + number
        if self._ended or self.count > 1:
            self._leave()
        raise KeyboardInterrupt(number)

    def _on_unraisable(self, unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            self._leave()
        self._hook(unraisable)

    def _leave(self) -> None:
        if not self._ended:
            say(STOPPED)
        os._exit(INTERRUPTED if self._code is None else self._code)  # the next call clears up, as after a kill
