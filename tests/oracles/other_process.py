"""Another process that holds the lock of a file or folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOLD = """
import sys
from truesource.grammar.support.locks import exclusive
with exclusive(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def locked_elsewhere(target: Path, *, kill: bool = False) -> Iterator[None]:
    """Another process holds the lock while the block runs; then it lets it go, or is killed."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield
        finally:
            if kill:
                process.kill()
            process.stdin.close()
            process.wait()
