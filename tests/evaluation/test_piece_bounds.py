"""Exact bounds of pieces, characters and bytes, and the oracle of a tokeniser."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models

import truesource as ts
from truesource.evaluation.bounds import SHARED_PIECES
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.subwords import build_subword_tokenizer

LAW = PCFG.from_text("S -> W S 0.5 | W 0.5\nW -> cat 0.4 | cats 0.3 | été 0.1 | zoo 0.1 | ziz 0.1")
LENGTHS = LengthRange(1, 4)
TEXT = [["cats"], ["cat", "été"], ["cats", "cat", "zoo"], ["cat", "cat"], ["ziz"]] * 3
TOKENIZER = build_subword_tokenizer([["cats", "cat", "été"]], "bpe", 14)  # z, o and i are unknown to it


def test_the_oracle_of_a_tokeniser_scores_pieces() -> None:
    for tokenizer in ("characters", "bytes", TOKENIZER):
        oracle = Oracle(LAW, lengths=LENGTHS, tokenizer=tokenizer)
        pieces = oracle.language.pieces_of(["cats", "cat"])  # type: ignore[attr-defined]
        scores = oracle.score([pieces])
        assert len(scores.log_prob) == len(pieces) + 1
        assert scores.log_prob.sum() == pytest.approx(LAW.exact.string_log_probs([["cats", "cat"]], LENGTHS)[0])
        (*_, last) = oracle.distributions([pieces])
        assert np.exp(last.log_prob).sum() == pytest.approx(1.0)
    assert oracle.language.pieces_of(["cats"])[0].startswith("▁")  # type: ignore[attr-defined]


def test_an_oracle_of_pieces_refuses_words() -> None:
    oracle = Oracle(LAW, lengths=LENGTHS, tokenizer=TOKENIZER)
    with pytest.raises(InputError, match=r"'cats cat' is a sentence of words, .* cut it with pieces_of"):
        oracle.token_log_probs([["cats", "cat"]])
    assert not np.isfinite(oracle.token_log_probs([["▁cat", "qqq"]])[0]).all()  # no piece, and no word


def test_bits_per_byte_and_perplexities_of_units_are_sums_over_their_numbers() -> None:
    nats = -LAW.exact.string_log_probs(TEXT, LENGTHS).sum()
    texts = [" ".join(sentence) for sentence in TEXT]
    number = {"characters": sum(map(len, texts)), "bytes": sum(len(text.encode()) for text in texts)}
    for unit in ("characters", "bytes"):
        result = ts.bound(Setting(LAW, TEXT, lengths=LENGTHS), masked=False, tokenizer=unit)
        assert result["piece_perplexity"].value == pytest.approx(np.exp(nats / (number[unit] + len(TEXT))))
        assert result["bits_per_byte"].value == pytest.approx(nats / np.log(2) / number["bytes"])
        assert result["bits_per_byte"].low < result["bits_per_byte"].value < result["bits_per_byte"].high  # type: ignore[operator]


def test_words_with_the_same_pieces_are_bounded_together() -> None:
    merged = LAW.merge_words({"zoo": "zoo", "ziz": "zoo"})
    together = [["zoo" if word == "ziz" else word for word in sentence] for sentence in TEXT]
    nats = -merged.exact.string_log_probs(together, LENGTHS).sum()
    result = ts.bound(Setting(LAW, TEXT, lengths=LENGTHS), masked=False, tokenizer=TOKENIZER)
    language = Oracle(LAW, lengths=LENGTHS, tokenizer=TOKENIZER).language
    number = sum(len(language.pieces_of(sentence)) + 1 for sentence in together)  # type: ignore[attr-defined]
    assert result["piece_perplexity"].value == pytest.approx(np.exp(nats / number))
    assert "bits_per_byte" not in [each.name for each in result.scores] and SHARED_PIECES in result.notes
    spelt = [["cats"], ["cat"], ["cat", "cats"]]  # whose words share pieces with no others
    result = ts.bound(Setting(LAW, spelt, lengths=LENGTHS), masked=False, tokenizer=TOKENIZER)
    bits = -LAW.exact.string_log_probs(spelt, LENGTHS).sum() / np.log(2)
    assert result["bits_per_byte"].value == pytest.approx(bits / len("catscatcat cats"))
    assert SHARED_PIECES not in result.notes


@pytest.mark.parametrize("wrong", [5, True, str.split, TOKENIZER.backend_tokenizer])
def test_an_object_that_is_no_tokeniser_is_refused(wrong: object) -> None:
    with pytest.raises(InputError, match="expecting a fast tokeniser of transformers"):
        Oracle(LAW, lengths=LENGTHS, tokenizer=wrong)


def test_a_tokeniser_without_tokens_is_refused(tmp_path: Path) -> None:
    Tokenizer(models.BPE()).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(InputError, match="the tokeniser has no tokens; train it, and save it again"):
        ts.Oracle(ts.language("agreement"), tokenizer=tmp_path / "tokenizer.json")


def test_names_and_truths_that_are_refused(tmp_path: Path) -> None:
    (tmp_path / "sp.model").write_bytes(b"\n\x0e")
    with pytest.raises(InputError, match="a model of SentencePiece"):
        Oracle(LAW, lengths=LENGTHS, tokenizer=tmp_path / "sp.model")
    with pytest.raises(InputError, match="is empty"):
        Oracle(LAW, lengths=LENGTHS, tokenizer="")
    pieces = Oracle(LAW, lengths=LENGTHS, tokenizer="characters").language
    for tokenizer in ("characters", TOKENIZER):
        with pytest.raises(InputError, match="are pieces already"):
            Oracle(pieces, lengths=LENGTHS, tokenizer=tokenizer)


def test_a_bound_of_pieces_is_causal() -> None:
    with pytest.raises(InputError, match="a bound of pieces is causal"):
        ts.bound(Setting(LAW, TEXT), causal=False, tokenizer="bytes")
