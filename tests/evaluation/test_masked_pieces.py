"""The truth of masked pieces as a model and as a judge: scores, distributions, divergences, and what is refused."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from truesource import evaluate
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.divergence.contexts import measure_contexts
from truesource.evaluation.divergence.of_words import in_words
from truesource.generator.language_model import EVERY_POSITION
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.pieces.truth import by_characters
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.truth import process

LENGTHS = LengthRange(1, 3)
LAW = PCFG.from_text("S -> W S 0.5 | W 0.5\nW -> cat 0.3 | cats 0.2 | bat 0.2 | at 0.2 | s 0.1")
OTHER = PCFG.from_text("S -> W S 0.4 | W 0.6\nW -> cat 0.2 | cats 0.3 | bat 0.1 | at 0.3 | s 0.1")
TEXT = [["cat"], ["cats", "at"], ["bat", "s", "cat"], ["at", "cats"], ["cat", "s"], ["at"]]


def oracle_of(law: PCFG) -> Oracle:
    return Oracle(law, "masked", lengths=LENGTHS, tokenizer="characters")


def language_of(law: PCFG) -> Counter[tuple[str, ...]]:
    """The probability of every sentence of characters, up to a factor."""
    words = {word: 2.0 * np.exp(law.exact.string_log_probs([[word]])[0]) for word in law.vocabulary}
    more = 1.0 - np.exp(law.exact.string_log_probs([[word] for word in law.vocabulary])).sum()
    found: Counter[tuple[str, ...]] = Counter()
    sentences: list[tuple[tuple[str, ...], float]] = [((), 1.0)]
    for _ in range(LENGTHS.high):
        sentences = [((*text, word), p * more * q) for text, p in sentences for word, q in words.items()]
        for text, p in sentences:
            found[tuple("▁".join(text))] += p
    return found


def test_a_divergence_is_that_of_all_sentences_written_out() -> None:
    truth, other = oracle_of(LAW), oracle_of(OTHER)
    text = [truth.language.pieces_of(sentence) for sentence in TEXT]  # type: ignore[attr-defined]
    p, q = language_of(LAW), language_of(OTHER)
    pieces, total, contexts, observed = truth.language.vocabulary, 0.0, 0, []
    for sentence in text:
        for at, seen in enumerate(sentence):
            both = [np.array([law[(*sentence[:at], piece, *sentence[at + 1 :])] for piece in pieces]) for law in (p, q)]
            one, two = (values / values.sum() for values in both)
            total += float((one[one > 0.0] * np.log(one[one > 0.0] / two[one > 0.0])).sum())
            contexts += 1
            observed.append(np.log(one[pieces.index(seen)]))
    assert truth.score(text, EVERY_POSITION).log_prob == pytest.approx(observed, abs=1e-10)
    setting = Setting(truth.language, text, lengths=LENGTHS)
    found = compare_distributions(other, setting, by=["position", "probability"])
    assert found.scores["kl"].value == pytest.approx(total / contexts, abs=1e-10)
    assert found.scores["kl"].value > 0.001
    assert "given:length, 1..3 words" in found.scores["kl"].signature
    assert "kl_per_word" not in found.scores
    assert evaluate("divergence", other, text, truth.language, lengths=LENGTHS)["kl"].value == found.scores["kl"].value
    assert compare_distributions(truth, setting).scores["kl"].value == 0.0


def test_distributions_have_the_scores() -> None:
    truth = oracle_of(LAW)
    (pieces,) = [truth.language.pieces_of(["bat", "s", "cat"])]  # type: ignore[attr-defined]
    columns = [*truth.words, "<unk>"]
    scores = truth.score([pieces, pieces]).log_prob
    for block, piece in zip(truth.distributions([pieces]), pieces, strict=True):
        assert np.exp(block.log_prob[0]).sum() == pytest.approx(1.0, abs=1e-12)
        value = block.log_prob[0, columns.index(piece)]
        assert value == scores[block.position] == scores[len(pieces) + block.position]
    wrong = truth.score([["c", "a", "a"]])
    assert wrong.impossible.tolist() == [0]


def test_what_needs_words_is_refused() -> None:
    truth = oracle_of(LAW)
    text = [truth.language.pieces_of(sentence) for sentence in TEXT]  # type: ignore[attr-defined]
    setting = Setting(truth.language, text, lengths=LENGTHS)
    measured = measure_contexts(truth, truth, text, top=1)
    with pytest.raises(NothingToMeasureError, match="only if each piece is given the pieces before it"):
        in_words(measured, by_characters(LAW), text)
    with pytest.raises(InputError, match="the divergence by ambiguity needs trees"):
        compare_distributions(truth, setting, by=["ambiguity"])
    with pytest.raises(InputError, match="the probability of a word given all others, which the process"):
        Oracle(process("shuffle-dyck", k=2, depth=4), "masked", tokenizer="characters")
    with pytest.raises(InputError, match="which a language of pieces does not have: use a model of whole words"):
        Oracle(LAW, "any-order", tokenizer="characters")
