"""Whatever code of others raises, prints or changes stays within the block that runs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from truesource.generator.foreign_code import code_errors
from truesource.grammar.support.errors import InputError


class BelowBaseError(BaseException):
    """Not an `Exception`."""


class SilentError(Exception):
    """Cannot be shown."""

    def __str__(self) -> str:
        raise ValueError("no text")


class UnreadableError(SilentError):
    """Its text ends the process."""

    def __str__(self) -> str:
        raise SystemExit(0)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (BelowBaseError("x"), "m.py:M raises BelowBaseError: x"),
        (SilentError(), "m.py:M raises SilentError"),
        (UnreadableError(), "m.py:M raises UnreadableError"),
        (SystemExit(0), "m.py:M raises SystemExit: 0"),
        (GeneratorExit(), "m.py:M raises GeneratorExit"),
        (KeyError("half \udc80"), r"m.py:M raises KeyError: 'half \udc80'"),
    ],
)
def test_every_exception_is_one_sentence(error: BaseException, said: str) -> None:
    with pytest.raises(InputError) as refusal, code_errors("m.py:M"):
        raise error
    assert str(refusal.value) == said and refusal.value.code == "code-failed"


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_interrupts_and_full_memory_pass(error: type[BaseException]) -> None:
    with pytest.raises(error), code_errors("m.py:M"):
        raise error


def test_a_generator_that_is_closed_in_a_block_is_closed() -> None:
    scope: dict[str, object] = {"__name__": "truesource.closed", "code_errors": code_errors}
    exec("def blocks():\n    with code_errors('m.py:M'):\n        yield 1\n        yield 2\n", scope)
    blocks: Iterator[int] = scope["blocks"]()  # type: ignore[operator]
    assert next(blocks) == 1
    blocks.close()  # type: ignore[attr-defined]


def test_what_code_changes_for_the_process_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    before = np.geterr(), sys.stdout, sys.stderr
    with code_errors("m.py:M"):
        np.seterr(all="raise")
        os.chdir("elsewhere")
        print("printed")
        sys.stdout.write("written\n")
        sys.stdout.close()
        sys.stdout = sys.stderr = None  # type: ignore[assignment]
    assert before == (np.geterr(), sys.stdout, sys.stderr) and Path.cwd() == tmp_path
    assert float(np.exp(np.float64(-1e6))) == 0.0  # an underflow raises no more
    print("ours", file=sys.stderr)
    assert capsys.readouterr() == ("", "printed\nwritten\nours\n")
