"""Calls of the command under strace: which system calls touch files, and what happens when one of them goes wrong."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import outcome
from verbs import Verb

#: system calls that change files, and those that only open them
CHANGING = [
    *("write", "pwrite64", "rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir"),
    *("link", "linkat", "ftruncate", "fsync"),
]
WATCHED = ["openat", "flock", *CHANGING]
_HERE = re.compile(r"AT_FDCWD<[^>]*>")
_RELATIVE = re.compile(r'^\W*"[^/"]')  #: the first argument is a path that does not start at the root
_EVENT = re.compile(r"^(\d+) +(\w+)\((.*)")


@dataclass(frozen=True)
class Event:
    """One system call of the main thread: the ``number``-th of its name, counted from 1."""

    call: str
    number: int
    text: str

    @property
    def changes(self) -> bool:
        """Whether it changes something on the disk."""
        return self.call in CHANGING or "O_WRONLY" in self.text or "O_RDWR" in self.text


def present() -> None:
    """Stop where strace is not installed."""
    if shutil.which("strace") is None:
        raise SystemExit("this campaign needs strace; install it (apt-get install strace)")


def events(folder: Path, verb: Verb) -> list[Event]:
    """The watched calls of an undisturbed run, in order, from the first to the last that is about the folder."""
    log = folder.with_name("trace.log")
    done, main = _strace(folder, verb, ["-y", "-o", str(log), "-e", f"trace={','.join(WATCHED)}"])
    if done.code:
        raise SystemExit(f"{verb.name} fails without damage: {done.out}{done.err}")
    counts: Counter[str] = Counter()
    found: list[Event] = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        match = _EVENT.match(line)
        if match is not None and int(match[1]) == main:
            counts[match[2]] += 1
            event = Event(match[2], counts[match[2]], match[3])
            if found or inside(event, folder):
                found.append(event)
    log.unlink()
    while found and not inside(found[-1], folder):
        found.pop()
    return found


def inside(event: Event, folder: Path) -> bool:
    """Whether the call is about a file below the folder: by its absolute name, or by one relative to it."""
    text = _HERE.sub("", event.text)
    return f"{folder}/" in text or (event.call != "write" and _RELATIVE.search(text) is not None)


def disturbed(folder: Path, verb: Verb, event: Event, what: str) -> outcome.Outcome:
    """Call the verb so that at ``event`` comes ``what``: ``signal=SIGKILL`` or ``error=ENOSPC``."""
    inject = ["-e", f"trace={event.call}", "-e", f"inject={event.call}:{what}:when={event.number}"]
    return _strace(folder, verb, ["-o", "/dev/null", *inject])[0]


def _strace(folder: Path, verb: Verb, options: list[str]) -> tuple[outcome.Outcome, int]:
    """Call the verb with strace attached before it begins; also gives the number of its process."""
    watchers: list[tuple[subprocess.Popen[bytes], int]] = []
    prepared, says = os.pipe()  # what the child does before the verb is not of the verb
    ready, go = os.pipe()

    def attach(child: int) -> None:
        os.close(says)
        os.read(prepared, 1)
        watcher = subprocess.Popen(["strace", "-f", "-q", *options, "-p", str(child)], stderr=subprocess.PIPE)
        watchers.append((watcher, child))
        while b"TracerPid:\t0\n" in Path(f"/proc/{child}/status").read_bytes():
            if watcher.poll() is not None:
                raise SystemExit(f"strace cannot watch a process: {watcher.communicate()[1].decode()}")
            time.sleep(0.002)
        os.write(go, b".")

    def wait() -> None:
        os.write(says, b".")
        os.read(ready, 1)
        for end in (prepared, says, ready, go):
            os.close(end)

    done = outcome.call(folder, verb, wait, attach)
    for end in (prepared, ready, go):
        os.close(end)
    watcher, child = watchers[0]
    watcher.terminate()  # what the call may have left behind is not watched any longer
    watcher.communicate()
    return done, child
