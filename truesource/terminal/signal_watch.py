"""Signals while Python cannot react: during a kernel on one long sentence, or while waiting for one.

Python runs the handler of a signal in the main thread, between two instructions. Kernels run without the
interpreter's lock, so another thread can act meanwhile.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

PATIENCE = 1.5  #: seconds that the main thread has to react to a signal, or to stop waiting for other threads
_EVERY = 0.05  #: seconds between checks
#: files of the standard library in which threads wait
_WAITING = ("threading.py", "queue.py", f"futures{os.sep}thread.py")


class SignalWatch:
    """A thread of the process that receives signals from the system, not from Python.

    It calls ``leave``, which ends the process as a kill would, if the main thread does not react to a signal within
    `PATIENCE` seconds, or waits that long for other threads after the signal.
    """

    _current: SignalWatch | None = None
    _reading: int | None = None

    def __init__(self, handler: Callable[[int, FrameType | None], None], heeded: Callable[[], bool]) -> None:
        self.handler = handler  #: handler of the signals to watch
        self.heeded = heeded  #: returns True if the handler has run
        self.leave: Callable[[int], None] = os._exit

    def begin(self, leave: Callable[[int], None]) -> None:
        """Start watching in place of an earlier watch; only in the main thread.

        Args:
            leave: function of the signal number that ends the process.
        """
        self.leave = leave
        SignalWatch._current = self
        if SignalWatch._reading is not None:
            return
        try:
            reading, writing = os.pipe()
        except OSError:  # no more files can be opened: signals wait for kernels
            return
        os.set_blocking(writing, False)
        try:
            threading.Thread(target=_watch, args=(reading,), name="signals", daemon=True).start()
        except RuntimeError:  # no more threads can be started: the same
            os.close(reading)
            os.close(writing)
            return
        SignalWatch._reading = reading
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))

    def look(self, number: int) -> None:
        """Wait until the main thread reacts to a signal, and leave if it does not."""
        if signal.getsignal(number) != self.handler:
            return
        since = time.monotonic()
        while time.monotonic() - since < PATIENCE:
            time.sleep(_EVERY)
            if self.heeded() and not _main_thread_waits():
                since = time.monotonic()  # it cleans up, or has ended
            if SignalWatch._current is not self:
                return
        self.leave(number)


def _watch(reading: int) -> None:
    while numbers := os.read(reading, 1):
        watch = SignalWatch._current
        if watch is not None:
            watch.look(numbers[0])


def _main_thread_waits() -> bool:
    """Return True if the main thread waits for another thread, such as one with a kernel."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    return frame is not None and frame.f_code.co_filename.endswith(_WAITING)
