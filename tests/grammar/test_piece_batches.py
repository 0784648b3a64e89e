"""Batches of pieces that share work: every order and division of them gives the distributions of single sentences."""

from __future__ import annotations

import numpy as np
import pytest

from truesource.generator.process_sampler import sampler_of
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.batch import Batch
from truesource.grammar.inference.causal import ExactCausal
from truesource.grammar.inference.cell_charts import CellCharts
from truesource.grammar.inference.exact import Exact
from truesource.grammar.pcfg import PCFG
from truesource.grammar.pieces import batches, inference
from truesource.grammar.pieces.tables import PieceTables, Words
from truesource.grammar.pieces.truth import TokenisedTruth, by_characters
from truesource.grammar.support.arrays import FloatArray, random_state
from truesource.grammar.truth import Truth, process

LENGTHS = LengthRange(1, 6)
WORDS = PCFG.from_text("S -> S S 0.4 | a 0.2 | ab 0.2 | abc 0.1 | b 0.1")
#: with more left corners, so that cells are computed given lengths, too
PAIRS = PCFG.from_text("""
S -> A B 0.5 | B C 0.5
A -> D E 0.5 | E D E 0.5
B -> E E D 0.5 | C 0.5
C -> D D 0.4 | D 0.6
D -> a b 0.5 | ab a b 0.5
E -> b a 0.5 | a abc b 0.5
""")
PIECES = by_characters(WORDS)


def texts() -> list[list[str]]:
    """Different sentences of pieces, of many lengths, and one that is no sentence."""
    sampler = sampler_of(WORDS, LENGTHS)
    words = sampler.sentences(sampler.draw(200, random_state(1)))
    return [*map(list, sorted({tuple(PIECES.pieces_of(each)) for each in words})), ["a", "c"]]


def tables(truth: TokenisedTruth, batch: Batch, first: int = 0) -> list[FloatArray]:
    """Copies of the distributions of a batch, by position."""
    return [block.probability.copy() for block in truth.exact.next_token_blocks(batch, LENGTHS, first=first)]


def alone(text: list[str]) -> FloatArray:
    """The distributions of a sentence in a batch of its own."""
    (batch,) = PIECES.exact.causal_batches([text], LENGTHS)
    return np.concatenate(tables(PIECES, batch))


def test_batches_in_any_order_give_what_single_sentences_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "WIDEST", 40)
    sentences = texts()
    work = PIECES.exact.causal_batches(sentences, LENGTHS)
    assert 1 < len({id(batch.group) for batch in work}) < len(work)  # type: ignore[attr-defined]
    expected = [alone(text) for text in sentences]
    parts = [batch.part(at, 3) for batch in work for at in range(0, len(batch.members), 3)]
    for batch in (*work, *reversed(work), *parts, *work[:1] * 3):
        rows = np.stack(tables(PIECES, batch))
        for row, members in enumerate(batch.members):
            for member in members:
                np.testing.assert_allclose(rows[:, row], expected[member], rtol=1e-13, atol=1e-16)


@pytest.mark.long
@pytest.mark.parametrize("lengths", [None, LengthRange(2, 12), LengthRange(2, 14)])
def test_words_beside_texts_share_the_cells_of_texts(
    lengths: LengthRange | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bits as if each beginning with another word were computed alone, without passes over most of them."""
    monkeypatch.setattr(CellCharts, "suit", lambda *_: True)
    monkeypatch.setattr(CellCharts, "_limit", lambda *_: 100_000)
    left: list[int] = []

    class Counted(PieceTables):
        def _after(self, others: dict[Words, list[int]]) -> None:
            left.append(sum(len(words) > 1 for words in others))
            super()._after(others)

    monkeypatch.setattr(inference, "PieceTables", Counted)

    def found() -> FloatArray:
        truth = by_characters(PCFG.from_text(PAIRS.to_text()))
        sampler = sampler_of(PAIRS)
        sentences = list(map(truth.pieces_of, sampler.sentences(sampler.draw(100, random_state(1)))))
        sentences += [text[:-1] for text in sentences if len(text) > 1] + [["a", "c"]]
        rows = [
            block.probability.ravel().copy()
            for batch in truth.exact.causal_batches(sentences, lengths)
            for block in truth.exact.next_token_blocks(batch, lengths)
        ]
        return np.concatenate(rows)

    together, shared = found(), sum(left)
    left.clear()
    monkeypatch.setattr(Exact, "blocks_beside", ExactCausal.blocks_beside)
    np.testing.assert_array_equal(together, found())
    assert shared <= (0 if lengths is None else sum(left) // 2)
    assert sum(left) > 20


def test_a_group_is_kept_until_its_sentences_were_used() -> None:
    one, *others = PIECES.exact.causal_batches([["a"], ["a", "b"], ["b"]], LENGTHS)
    group = one.group  # type: ignore[attr-defined]
    assert all(batch.group is group for batch in others)  # type: ignore[attr-defined]
    tables(PIECES, one)
    assert group._tables is not None
    for batch in others:
        tables(PIECES, batch)
    assert group._tables is None


@pytest.mark.parametrize(
    "truth", [WORDS, process("shuffle-dyck", k=2, depth=4), PIECES], ids=["grammar", "process", "pieces"]
)
def test_distributions_from_a_later_position_are_the_last_ones(truth: Truth) -> None:
    words = list(truth.vocabulary)
    (batch,) = truth.exact.causal_batches([[words[0], words[1], words[0]], [words[1]] * 3], LENGTHS)
    every = tables(truth, batch)  # type: ignore[arg-type]
    for first in range(5):
        some = tables(truth, batch, first)  # type: ignore[arg-type]
        assert len(some) == len(every[first:])
        assert all(np.array_equal(a, b) for a, b in zip(some, every[first:], strict=True))
