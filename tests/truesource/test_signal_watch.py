"""Signals that Python cannot heed at once: work outside of it, as in a kernel; waiting for a thread at such work."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from truesource.terminal.logs import STOPPED

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]
#: the hash takes an hour, without the lock of the interpreter and without a look at signals
SCRIPT = """
import hashlib, os, signal, sys, threading, time
from truesource.terminal.logs import Interrupts

def announce(*names):
    main = threading.main_thread().ident
    while sys._current_frames()[main].f_code.co_name not in names:
        time.sleep(0.01)
    time.sleep(0.2)
    print("ready", flush=True)

def kernel():
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", 2**31 - 1)

def waits():
    done = threading.Event()
    threading.Thread(target=lambda: (kernel(), done.set()), daemon=True).start()
    threading.Thread(target=announce, args=("wait",), daemon=True).start()
    try:
        done.wait()
    finally:
        done.wait()

def clears_up():
    try:
        print("ready", flush=True)
        while True:
            time.sleep(0.1)
    finally:
        time.sleep(2.5)
        print("cleared up", flush=True)

def heeds_itself():
    signal.signal(signal.SIGINT, lambda *_: None)
    print("ready", flush=True)
    time.sleep(3)
    print("did its work", flush=True)

def in_kernel():
    threading.Thread(target=announce, args=("kernel",), daemon=True).start()
    kernel()

with Interrupts() as interrupts:
    try:
        globals()[sys.argv[1]]()
    except KeyboardInterrupt as error:
        sys.exit(interrupts.exit_code(error))
"""


@pytest.mark.parametrize(
    ("work", "number", "code", "out", "err"),
    [
        ("in_kernel", signal.SIGINT, 130, "", f"{STOPPED}\n"),
        ("in_kernel", signal.SIGTERM, 143, "", f"{STOPPED}\n"),
        ("waits", signal.SIGINT, 130, "", f"{STOPPED}\n"),
        ("clears_up", signal.SIGTERM, 143, "cleared up\n", ""),
        ("heeds_itself", signal.SIGINT, 0, "did its work\n", ""),
    ],
)
def test_a_signal_ends_the_process_and_nothing_is_ended_that_heeds_it(
    work: str, number: signal.Signals, code: int, out: str, err: str
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, work],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    with process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            process.send_signal(number)
            printed, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, printed, said) == (code, out, err)
