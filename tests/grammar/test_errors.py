"""Errors of the user: the kind is a code, and survives the way from another process."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

from truesource.evaluation.measures.paired import NothingToCompareError
from truesource.grammar.inference.batch import TooLongError
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import read_text, refuse_existing
from truesource.grammar.support.locks import BusyError, exclusive
from truesource.grammar.support.records import read_record


def code_of(call: Any) -> str:
    with pytest.raises(InputError) as caught:
        call()
    return caught.value.code


def test_codes(tmp_path: Path) -> None:
    (tmp_path / "damaged.json").write_text("{")
    (tmp_path / "damaged.npz").write_bytes(b"PK\x03\x04")
    (tmp_path / "latin").write_bytes(b"\xff\xfe\xfa")
    assert code_of(lambda: read_text(tmp_path / "none", not_text="no text")) == "missing"
    assert code_of(lambda: read_text(tmp_path / "latin", not_text="no text")) == "damaged"
    assert code_of(lambda: read_text(tmp_path, not_text="no text")) == "unreadable"
    assert code_of(lambda: read_record(tmp_path / "none", dict[str, Any], remedy="again")) == "missing"
    assert code_of(lambda: read_record(tmp_path / "damaged.json", dict[str, Any], remedy="again")) == "damaged"
    assert code_of(lambda: PCFG.load(tmp_path / "damaged.npz")) == "damaged"
    assert code_of(lambda: PCFG.load(tmp_path / "none.npz", format="npz")) == "missing"
    assert code_of(lambda: refuse_existing(tmp_path / "latin", False)) == "exists"
    assert code_of(lambda: PCFG.from_text("S -> a 0.5")) == "input"


def test_a_target_of_another_call_is_busy(tmp_path: Path) -> None:
    found: list[str] = []

    def other() -> None:
        with pytest.raises(BusyError) as caught, exclusive(tmp_path / "m"):
            pass
        found.append(caught.value.code)

    with exclusive(tmp_path / "m"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert found == ["busy"]


@pytest.mark.parametrize(
    "error",
    [
        InputError("wrong; mend it", Path("a.txt"), 3, code="damaged"),
        NothingToCompareError("no sentence", 3, 1, 2),
        TooLongError(1000, 10**12, 4),
        BusyError("wait", "a.txt"),
    ],
)
def test_all_errors_pickle(error: InputError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
    assert copy.code != "input"
