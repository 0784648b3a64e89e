"""Streams that are closed or not in UTF-8, devices, links to themselves, and variables that stop the compiler."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Command

from truesource.grammar.support.errors import InputError
from truesource.terminal.logs import LogSettings, begin_logs, end_logs
from truesource.terminal.surroundings import prepare_streams, require_environment

MINUS = "\u2212"  #: a word that neither ASCII nor Latin-1 has
GRAMMAR = f"S -> S S 0.3 | {MINUS} 0.5 | b 0.2\n"
RUN = f"{sys.executable} -m truesource"
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}  #: Python 3.11 then prints ASCII


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "g.txt").write_text(GRAMMAR, encoding="utf-8")
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shell(line: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONIOENCODING"} | variables
    return subprocess.run(line, shell=True, capture_output=True, check=False, env=environment)


# -- streams --------------------------------------------------------------------------------------------


@pytest.mark.long
def test_without_standard_error_the_work_is_done(here: Path) -> None:
    done = shell(f"{RUN} sample g.txt -n 20 --shares train=1 --lengths 1..8 -o corpus 2>&- <&-")
    assert done.returncode == 0 and done.stdout.startswith(b"Wrote corpus: 20 sentences")


@pytest.mark.long
def test_without_standard_output_nothing_can_be_written_to_it(here: Path) -> None:
    done = shell(f"{RUN} inspect g.txt --json - >&-")
    assert done.returncode == 2
    assert done.stderr == b"truesource: the standard output is closed; name a file for --json or --table\n"


def test_closed_descriptors_are_not_taken_by_files(here: Path) -> None:
    code = (
        "import os; from truesource.terminal.surroundings import prepare_streams; prepare_streams();"
        "file = open('new', 'w'); os.write(1, b'x'); os.write(2, b'x'); file.write(str(file.fileno() > 2))"
    )
    done = shell(f'{sys.executable} -c "{code}" <&- >&- 2>&-')
    assert done.returncode == 0 and (here / "new").read_text() == "True"


@pytest.mark.long
@pytest.mark.parametrize("line", ["language", "inspect g.txt"])
def test_the_locale_c_has_all_characters(here: Path, line: str) -> None:
    """A table, whose printer is that of `rich`, and lines."""
    done = shell(f"{RUN} {line}", **ASCII)
    assert done.returncode == 0 and done.stderr == b""
    assert ("ü" if line == "language" else MINUS) in done.stdout.decode("utf-8")


def test_an_encoding_without_a_character_shows_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", stream)
    prepare_streams()
    print(f"ü{MINUS}", end="", flush=True)
    assert stream.buffer.getvalue() == b"\xfc\\u2212"  # type: ignore[attr-defined]


@pytest.mark.long
def test_json_on_standard_output_is_utf_8_like_a_file(here: Path) -> None:
    done = shell(f"{RUN} inspect g.txt --json -", PYTHONIOENCODING="latin-1")
    assert done.returncode == 0 and MINUS in json.dumps(json.loads(done.stdout.decode("utf-8")), ensure_ascii=False)


# -- the log file ---------------------------------------------------------------------------------------

full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")


@full
@pytest.mark.parametrize("line", ["--log-file /dev/full inspect g.txt", "inspect g.txt --log-file /dev/full"])
def test_a_log_file_that_cannot_be_written(here: Path, command: Command, line: str) -> None:
    done = command(*line.split())
    assert done.code == 2 and done.out == ""
    assert (
        done.err.startswith("truesource: cannot write the log file: No space left on device")
        and done.err.count("\n") == 1
    )


@full
def test_a_log_file_whose_disk_becomes_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The work goes on, and one line says that the log does not."""
    import truesource.terminal.logs as logs

    begin_logs(LogSettings(file=tmp_path / "log"))
    written = logs._CallLog.file
    assert written is not None
    before = written.setStream(Path("/dev/full").open("w", encoding="utf-8"))  # noqa: SIM115
    assert before is not None
    before.close()
    for _ in range(3):
        logs.to_log_file("a line")
    end_logs(0)
    assert capsys.readouterr().err.count("the log file cannot be written any more: No space left on device") == 1


# -- what is named --------------------------------------------------------------------------------------


def test_the_home_of_nobody(here: Path, command: Command) -> None:
    done = command("score", "~nosuch", "g.txt", "--oracle", "g.txt")
    assert done.code == 2 and done.err.startswith("truesource: there is no model '~nosuch'")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="a device that never ends")
@pytest.mark.parametrize(
    "line",
    [
        "sample /dev/zero -n 3 -o new",
        "cite /dev/zero",
        "inspect /dev/zero",
        "inspect g.txt /dev/zero",
        "parse g.txt /dev/zero -o new",
        "induce /dev/zero -o new.npz",
        "split /dev/zero -o new",
        "convert /dev/zero new.npz",
    ],
)
def test_devices_are_not_read(here: Path, command: Command, line: str) -> None:
    done = command(*line.split())
    assert done.code == 2 and done.err == "truesource: this is a device, not a file; use a file or a pipe (/dev/zero)\n"
    assert sorted(path.name for path in here.iterdir()) == ["g.txt", "loop"]


@pytest.mark.parametrize(
    "line",
    [
        "sample g.txt -n 20 -o loop",
        "sample g.txt -n 20 -o loop/new",
        "convert g.txt loop",
        "convert g.txt loop/new.npz",
        "inspect g.txt --json loop",
        "parse g.txt g.txt -o loop",
        "train g.txt -o loop --model ngram",
    ],
)
def test_a_link_to_itself_is_no_place(here: Path, command: Command, line: str) -> None:
    done = command(*line.split())
    assert done.code == 2 and done.err.startswith("truesource: a symbolic link leads back to itself; remove it")
    assert (here / "loop").is_symlink() and sorted(path.name for path in here.iterdir()) == ["g.txt", "loop"]


@pytest.mark.long
def test_a_grammar_from_a_pipe_is_read_once(here: Path) -> None:
    done = shell(f"cat g.txt | {RUN} inspect /dev/stdin")
    assert done.returncode == 0 and done.stdout.startswith(b"symbols 1, words 2\n")


# -- variables ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "value", "fine"),
    [
        ("NUMBA_NUM_THREADS", "0", False),
        ("NUMBA_NUM_THREADS", "-3", False),
        ("NUMBA_NUM_THREADS", "1", True),
        ("NUMBA_NUM_THREADS", "many", True),
        ("NUMBA_DISABLE_JIT", "1", False),
        ("NUMBA_DISABLE_JIT", "0", True),
    ],
)
def test_variables_that_stop_the_compiler(
    variable: str, value: str, fine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    if fine:
        require_environment()
        return
    with pytest.raises(InputError, match=variable):
        require_environment()


def test_the_command_looks_at_the_variables(here: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", "0")
    done = command("inspect", "g.txt")
    assert (done.code, done.out) == (2, "") and done.err.startswith(
        "truesource: the environment variable NUMBA_NUM_THR"
    )
