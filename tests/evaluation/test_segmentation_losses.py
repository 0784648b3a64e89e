"""Parts of the divergence of models of pieces: the language, words that are none, other segmentations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from byte_tokenizers import bpe, llama
from saved_models import save_piece_model

from truesource import evaluate
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.divergence.segmentation_losses import PARTS
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.models import load_model

WORDS = ("cat", "cats", "at", "tacat")
LAW = PCFG.from_text("S -> W S 0.5 | W 0.5\nW -> cat 0.5 | cats 0.2 | at 0.2 | tacat 0.1")
LENGTHS = LengthRange(1, 3)
TEXT = [["cat"], ["cats", "at"], ["tacat", "cat", "cats"], ["at", "tacat"], ["cats"]] * 3


@pytest.fixture(scope="module", params=["bpe", "unigram", "byte fallback"])
def model(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    if request.param == "byte fallback":
        merges = [("a", "t"), ("▁", "c"), ("▁c", "at"), ("▁", "at")]
        return llama(bpe(b" as", ["▁", *"cats", "at", "▁c", "▁cat", "▁at"], merges, prefix=True))
    folder = save_piece_model(tmp_path_factory.mktemp("m"), TEXT, request.param, 15)
    return load_model(folder, device="cpu")


def texts(spelling: dict[str, str], model: Any) -> Iterator[tuple[list[str], str]]:
    """The pieces, and the spelling, of every sequence of up to four words."""
    for size in range(1, 5):
        for words in product(WORDS, repeat=size):
            (pieces,) = model.cut([list(words)])
            yield pieces, "".join(spelling[piece] for piece in pieces)


@pytest.mark.long
def test_parts_are_what_enumerated_texts_give(model: Any) -> None:
    """Tokens are canonical, or spell words, if some text of the words begins so; the parts follow from their masses."""
    setting = Setting(LAW, TEXT[:5], lengths=LENGTHS)
    tokens, cut = setting.with_distributions(model)
    spelling = tokens.spelling
    every = list(texts(spelling, model))
    canonical = {tuple(pieces[:n]) for pieces, _ in every for n in range(len(pieces) + 1)}
    whole = {tuple(pieces) for pieces, _ in every}
    begun = {text[:n] for _, text in every for n in range(len(text) + 1)}
    ended = {text for _, text in every}
    sums = dict.fromkeys(PARTS, 0.0)
    kl = 0.0
    for pieces in cut.sentences:
        compared = compare_distributions(tokens, Setting(cut.language, [pieces], lengths=LENGTHS))
        kl += compared.scores["kl"].value * (len(pieces) + 1)
        for block in tokens.distributions([pieces]):
            before = tuple(pieces[: block.position])
            text = "".join(spelling[piece] for piece in before)
            q = np.exp(block.log_prob[0])
            a = sum(q[i] for i, name in enumerate(tokens.vocabulary) if (*before, name) in canonical)
            b = sum(q[i] for i, name in enumerate(tokens.vocabulary) if text + spelling.get(name, "#") in begun)
            a += q[-1] if before in whole or not before else 0.0
            b += q[-1] if text in ended or not before else 0.0
            sums["kl_nonwords"] -= np.log(b)
            sums["kl_segmentation"] -= np.log(a / b)
    sums["kl_language"] = kl - sums["kl_nonwords"] - sums["kl_segmentation"]
    scores = compare_distributions(tokens, cut).scores
    number = sum(len(words) + 1 for words in setting.sentences)
    assert scores["kl_per_word"].value == pytest.approx(kl / number)
    for name in PARTS:
        assert scores[name].value == pytest.approx(sums[name] / number, rel=1e-6)
    assert scores["kl_segmentation"].value > 0.0
    assert scores["kl_nonwords"].value > 0.0


@pytest.mark.long
def test_sums_give_back_what_enumerated_segmentations_have(model: Any) -> None:
    result = evaluate("divergence", model, TEXT, LAW, lengths=LENGTHS, sums=len(TEXT))
    spelling = model.as_tokens().spelling
    numbers = {name: number for number, name in enumerate(model.token_names)}

    def ways(text: str) -> Iterator[list[int]]:
        if not text:
            yield []
        for name, piece in spelling.items():
            if text.startswith(piece):
                yield from ([numbers[name], *rest] for rest in ways(text[len(piece) :]))

    gain = 0.0
    for pieces in model.cut(TEXT):
        rows = [np.array(way) for way in ways("".join(spelling[piece] for piece in pieces))]
        assert len(rows) > 1
        own = model.log_probs([np.array([numbers[piece] for piece in pieces])])[0]
        gain += float(np.logaddexp.reduce(model.log_probs(rows)) - own)
    number = sum(len(words) + 1 for words in TEXT)
    assert result["gain_of_sums"].value == pytest.approx(gain / number, rel=1e-3)
    whole = result["kl_per_word"].value
    assert result["kl_summed"].value == pytest.approx(whole - gain / number, rel=1e-5)
    assert sum(result[name].value for name in PARTS) == pytest.approx(whole)


def test_sums_need_pieces() -> None:
    with pytest.raises(InputError, match="--sums needs a tokeniser of pieces"):
        evaluate("divergence", Oracle(LAW, lengths=LENGTHS), TEXT, LAW, lengths=LENGTHS, sums=3)
