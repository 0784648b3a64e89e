"""The machine refuses (disk, memory, files, threads, pipe) or Ctrl-C comes: one sentence and an exit code, always."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
from command_line import Command

from truesource.cli.main import explain

GRAMMAR = "S -> S S 0.3 | a 0.5 | b 0.2\n"
STOPPED = "truesource: stopped; finished work is kept, run the same command again to resume\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "g.txt").write_text(GRAMMAR, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def script(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in another process."""
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


# -- sentences ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "part"),
    [
        (errno.ENOSPC, "no space left on the disk; free some space"),
        (errno.EDQUOT, "quota is used up"),
        (errno.EFBIG, "ulimit -f"),
        (errno.EMFILE, "ulimit -n"),
        (errno.ENFILE, "ulimit -n"),
        (errno.ENOMEM, "not enough memory"),
        (errno.EAGAIN, "ulimit -u"),
        (errno.EROFS, "read-only; choose another place"),
        (errno.EACCES, "permission denied"),
        (errno.EPIPE, "the program that read the output has ended"),
        (errno.ENOENT, "No such file or directory"),
    ],
)
def test_errors_of_the_system(number: int, part: str) -> None:
    found = explain(OSError(number, os.strerror(number), "data/x.npz"))
    assert found is not None and part in found and found.endswith("(data/x.npz)")
    assert explain(OSError(number, os.strerror(number))) == found.removesuffix(" (data/x.npz)")


@pytest.mark.parametrize(
    ("error", "part"),
    [
        (MemoryError(), "not enough memory"),
        (RuntimeError("can't start new thread"), "ulimit -u"),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: 9 bytes"),
            "not enough mem",
        ),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "not enough memory"),
        (ImportError("libx.so: failed to map segment from shared object"), "not enough memory"),
        (ImportError("libx.so: cannot open shared object file: Too many open files"), "ulimit -n"),
        (SystemError("error return without exception set"), "not enough memory"),
        (Exception("I/O error: No space left on device (os error 28)"), "no space left"),
    ],
)
def test_errors_of_libraries(error: Exception, part: str) -> None:
    found = explain(error)
    assert found is not None and part in found


def test_the_cause_of_an_error_is_found() -> None:
    try:
        try:
            raise OSError(errno.ENOSPC, "full", "x")
        except OSError as error:
            raise ValueError("cannot save") from error
    except ValueError as error:
        found = explain(error)
    assert found is not None and "no space left on the disk" in found


def test_bugs_are_not_explained_away() -> None:
    assert explain(ValueError("negative dimensions")) is None
    assert explain(KeyError("x")) is None
    try:
        try:
            open("nowhere")  # noqa: PTH123, SIM115
        except OSError:
            raise KeyError("a bug in the handling of a missing file")  # noqa: B904
    except KeyError as error:
        assert explain(error) is None


# -- the command ----------------------------------------------------------------------------------------

MAIN = "from truesource.cli.main import main; main()"


def inspect_to(stdout: IO[str]) -> subprocess.CompletedProcess[str]:
    """Run a verb whose output goes there."""
    call = [sys.executable, "-c", MAIN, "inspect", "g.txt"]
    return subprocess.run(call, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.long
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_full_standard_output(here: Path) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = inspect_to(full)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("truesource: no space left on the disk")


@pytest.mark.long
def test_a_reader_that_has_gone(here: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = inspect_to(pipe)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the program that read the output has ended" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("limit", "value", "part"),
    [("NOFILE", 4, "ulimit -n"), ("FSIZE", 3, "too large")],
)
def test_a_limit_of_the_system(limit: str, value: int, part: str, here: Path) -> None:
    """The limit comes into force when the grammar is read, with the most part of the libraries still to import."""
    code = (
        "import resource, sys\n"
        "from truesource.cli import app, convert\n"
        "from truesource.terminal import output\n"
        f"resource.setrlimit(resource.RLIMIT_{limit}, ({value}, {value}))\n"
    )
    done = script(code + MAIN, "convert", "g.txt", "new.npz")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert part in done.stderr.lower()
    assert [path.name for path in here.iterdir()] == ["g.txt"]


def test_memory_that_runs_out_within_a_verb(here: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("truesource.grammar.formats.load_rules", exhausted)
    found = command("convert", "g.txt", "new.npz")
    assert (found.code, found.err.count("\n")) == (2, 1) and "not enough memory" in found.err
    assert [path.name for path in here.iterdir()] == ["g.txt"]


# -- Ctrl-C ---------------------------------------------------------------------------------------------

AT_IMPORT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
name = sys.argv.pop(1)
left = [True]
def hook(event, arguments):
    if event == "import" and arguments[0] == name and left:
        left.clear()
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(hook)
from truesource.cli.main import main
main()
"""


@pytest.mark.long
@pytest.mark.parametrize("module", ["truesource.cli.app", "typer", "numpy", "numpy._core.multiarray"])
def test_ctrl_c_during_an_import(module: str, here: Path) -> None:
    done = script(AT_IMPORT, module, "convert", "g.txt", "new.npz")
    assert (done.returncode, done.stderr) == (130, STOPPED)
    assert [path.name for path in here.iterdir()] == ["g.txt"]


IN_THE_VERB = """
import atexit, os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from truesource.cli import main as entry

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

class Fragile:
    def __del__(self):
        interrupt()

def verb():
{body}

entry._run = verb
entry.main()
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "body",
    [
        "    interrupt()",
        "    try: interrupt()\n    except KeyboardInterrupt: raise ImportError('half imported')",
        "    try: interrupt()\n    finally: interrupt()",
        "    try: interrupt()\n    except KeyboardInterrupt:\n        try: interrupt()\n        finally: interrupt()",
        "    Fragile()\n    raise SystemExit(0)",
        "    atexit.register(interrupt)\n    interrupt()",
    ],
    ids=["once", "turned into another error", "twice", "three times", "where nothing can be raised", "at exit"],
)
@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_ctrl_c(number: str, code: int, body: str) -> None:
    done = script(IN_THE_VERB.format(body=body).replace("(), signal.SIGINT", f"(), signal.{number}"))
    assert (done.returncode, done.stderr) == (code, STOPPED)


def test_ctrl_c_when_all_is_done() -> None:
    done = script(IN_THE_VERB.format(body="    atexit.register(interrupt)\n    print('done')"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_ctrl_c_that_is_ignored_stays_ignored() -> None:
    body = "    interrupt()\n    print('goes on')"
    code = IN_THE_VERB.format(body=body).replace("signal.default_int_handler", "signal.SIG_IGN")
    done = script(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "goes on\n", "")
