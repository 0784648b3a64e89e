"""Signatures: the vocabulary of keys, and reading them back."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from truesource.evaluation.core.signature import KEYS, SignatureKey, frame_parts, parts_of, signature
from truesource.generator.language_model import ScoringFrame

PACKAGES = Path(__file__).resolve().parents[2]


def test_keys_that_are_not_listed_are_refused() -> None:
    with pytest.raises(ValueError, match="'length_condition' is not a key of signatures"):
        signature({"objective": "causal", "length_condition": "6-25"})


def test_every_key_is_written_somewhere_and_has_a_meaning_of_its_own() -> None:
    code = "".join(
        path.read_text(encoding="utf-8")
        for package in ("generator", "evaluation", "truesource")
        for path in (PACKAGES / package).rglob("*.py")
        if path.name != "signature.py"
    )
    unused = [key for key in KEYS if f'"{key}"' not in code and f"{key.replace('-', '_')}=" not in code]
    assert set(unused) <= {"v"}  # which `signature` adds itself
    repeated = {text for text, n in Counter(KEYS.values()).items() if n > 1}
    assert repeated <= {"number that count", "row of that table"}


def test_parts_come_back_even_with_bars_and_colons_in_values() -> None:
    parts = {"by": "class", "group": "||:x", "data": "one:12ab+two:34cd", "ci": "none/fewer-than-10-sentences"}
    read = parts_of(signature(parts))
    assert list(read) == [*parts, "v"]
    assert {key: read[key] for key in parts} == parts


def test_keys_read_from_files_are_checked() -> None:
    of_file = TypeAdapter(dict[SignatureKey, str])
    assert of_file.validate_python({"given": "none"}) == {"given": "none"}
    with pytest.raises(ValidationError, match="not a key of signatures"):
        of_file.validate_python(json.loads('{"giwen": "none"}'))


def test_a_masked_model_has_no_end_to_count() -> None:
    assert frame_parts(ScoringFrame(), "masked") == {"eos": "out", "first": "in", "unk": "token"}
    assert frame_parts(ScoringFrame(first=False, unk="skip"), "causal") == {"eos": "in", "first": "out", "unk": "skip"}
