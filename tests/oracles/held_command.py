"""A command that is stopped by a signal at a known moment of its training: nobody has to be quick."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

HOLD = """
import sys
from pathlib import Path
from truesource.lmtrain.trainer import LossTrainer
from truesource.cli.main import main

pattern = sys.argv.pop(1)
whole = LossTrainer.compute_loss

def held(*args, **kwargs):
    if any(Path().glob(pattern)):
        print("held", file=sys.__stderr__, flush=True)
        sys.stdin.read()
    return whole(*args, **kwargs)

LossTrainer.compute_loss = held
main()
"""


def stopped_in_training(
    number: signal.Signals, pattern: str, folder: Path, *call: str, said: str = ""
) -> tuple[int, str]:
    """Run the command in a folder until it trains with a file of that pattern there, and send it the signal.

    It is also waited for until the command has said something: work that lasts says soon that it has begun.

    Returns:
        The exit status as `subprocess.Popen.returncode`, and what the command wrote to stderr after the signal.
    """
    call = (sys.executable, "-c", HOLD, pattern, *call)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(call, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"}, text=True, **pipes) as process:
        assert process.stderr is not None
        before = ""
        while "held\n" not in before or said not in before:
            line = process.stderr.readline()
            assert line, f"the command has ended before the signal: {before}"
            before += line
        process.send_signal(number)
        _, after = process.communicate()
    return process.returncode, after
