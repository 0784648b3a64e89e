"""One model, one text, many perplexities: what known harnesses compute, and which choice makes the difference.

Each harness is written here as it works, in plain loops over the logits of the bare network, and set against our
score. Each test names one cause.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from truesource.generator.language_model import ScoringFrame
from truesource.lmtrain.model_registry import model_settings, network_architecture
from truesource.lmtrain.pieces.models import CausalPieceModel
from truesource.lmtrain.pieces.words import Marks, Pieces
from truesource.lmtrain.subword_vocabulary import encoder_of
from truesource.lmtrain.subwords import make_tokenizer
from truesource.lmtrain.trained_models import as_language_model

TEXT = [
    ["the", "cat", "sat", "on", "the", "mat"],
    ["cats", "sit"],
    ["the", "seated", "cat", "has", "sat", "on", "a", "mat", "and", "on", "the", "cat"],
    ["a", "mat"],
]
N_WORDS = sum(map(len, TEXT))


def fixed_model(**settings: Any) -> tuple[Any, Any, Any]:
    """Network, our model around it, and its encoder; random weights, in float64 so that equal means equal."""
    config = model_settings(architecture="gpt2", layers=1, heads=2, dim=16, max_positions=60, **settings)
    tokenizer = make_tokenizer(config, TEXT, "causal")
    encoder = encoder_of(tokenizer)
    torch.manual_seed(1)
    network = network_architecture("gpt2").build(config, encoder).double().eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return network, as_language_model(network, tokenizer, "fixed"), encoder


NETWORK, MODEL, V = fixed_model()
PIECE_NETWORK, PIECE_MODEL, P = fixed_model(tokenizer="bpe", vocab_size=26)


def log_probs(network: torch.nn.Module, ids: Sequence[int]) -> Tensor:
    """(L, V) log probabilities of what follows each of ``ids``."""
    with torch.no_grad():
        return torch.log_softmax(network(input_ids=torch.tensor([list(ids)])).logits[0], -1)


def ours(frame: ScoringFrame) -> float:
    """Our perplexity: exp of the mean over everything the frame counts, all sentences together."""
    return math.exp(-MODEL.score(TEXT, frame).log_prob.mean())


def rolling(ids: Sequence[int], *, start: int) -> float:
    """Log likelihood of a document as rolling harnesses sum it: every token after the ones before and ``start``."""
    rows = log_probs(NETWORK, [start, *ids[:-1]])
    return sum(float(rows[k, token]) for k, token in enumerate(ids))


DEFAULT, NO_END = ScoringFrame(), ScoringFrame(eos=False)


def test_our_default_counts_every_word_and_every_end_once() -> None:
    """Cause: none; the chain rule over ``w1 .. wn <eos>`` after ``<bos>``, divided by words and ends."""
    total = 0.0
    for row in V.encode(TEXT):
        rows = log_probs(NETWORK, [V.bos, *row])
        total += sum(float(rows[k, token]) for k, token in enumerate([*row, V.eos]))
    assert ours(DEFAULT) == pytest.approx(math.exp(-total / (N_WORDS + len(TEXT))), rel=1e-10)


def test_without_the_end_of_the_sentence() -> None:
    """Cause: the end is not predicted. Word perplexity of a rolling harness is our frame with ``eos`` out.

    Such a harness (lm-evaluation-harness, ``loglikelihood_rolling`` and ``word_perplexity``) predicts the tokens of
    each document after a start token and divides by its words, so a model that never ends sentences loses nothing.
    """
    total = sum(rolling(row.tolist(), start=V.bos) for row in V.encode(TEXT))
    harness = math.exp(-total / N_WORDS)
    assert harness == pytest.approx(ours(NO_END), rel=1e-10)
    assert abs(harness / ours(DEFAULT) - 1) > 0.01


class CountingStart:
    """Our words, with the start token itself as a word of the text."""

    marks = Marks((V.bos,), (V.eos,), None, V.pad)
    begins = None

    def __len__(self) -> int:
        return len(V)

    def align(self, sentences: Sequence[Sequence[str]]) -> Pieces:
        ids = [V.bos if word == "<bos>" else V.ids[word] for sentence in sentences for word in sentence]
        lengths = np.array([len(sentence) for sentence in sentences])
        return Pieces(np.array(ids), np.ones(len(ids), dtype=np.int64), lengths, np.zeros(len(ids), dtype=bool))


@pytest.mark.parametrize("eos", [False, True])
def test_a_doubled_start_token(eos: bool) -> None:
    """Cause: the tokeniser adds ``<bos>`` and the harness another one, which puts a context and a target too many.

    The first ``<bos>`` is the context, the second one is predicted and counted in the sum, yet not among the words
    that the sum is divided by, and every word is predicted after two of them.
    """
    rows = [[V.bos, *row.tolist(), *[V.eos] * eos] for row in V.encode(TEXT)]
    count = N_WORDS + eos * len(TEXT)
    doubled = math.exp(-sum(rolling(row, start=V.bos) for row in rows) / count)
    single = math.exp(-sum(rolling(row[1:], start=V.bos) for row in rows) / count)
    assert single == pytest.approx(ours(ScoringFrame(eos=eos)), rel=1e-10)
    assert abs(doubled / single - 1) > 0.01

    counting = CausalPieceModel(NETWORK, MODEL.tokenizer, CountingStart(), "doubled")
    scores = counting.score([["<bos>", *sentence] for sentence in TEXT], ScoringFrame(eos=eos))
    assert doubled == pytest.approx(math.exp(-scores.log_prob.sum() / count), rel=1e-10)
    words = scores.log_prob[scores.position > 0]
    alone = MODEL.score(TEXT, ScoringFrame(eos=eos)).log_prob
    assert np.abs(words - alone).max() > 0.01  # the context of every word has changed, not the sum alone


def test_one_model_one_text_four_perplexities() -> None:
    """Cause: the two flags above. All four divide by the words alone, as word perplexity does; all four differ."""
    found = {}
    for eos in (False, True):
        for start in (1, 2):
            rows = [[*[V.bos] * (start - 1), *row.tolist(), *[V.eos] * eos] for row in V.encode(TEXT)]
            found[eos, start] = math.exp(-sum(rolling(row, start=V.bos) for row in rows) / N_WORDS)
    assert found[False, 1] == pytest.approx(ours(NO_END), rel=1e-10)
    assert math.log(found[True, 1]) == pytest.approx(
        math.log(ours(DEFAULT)) * (N_WORDS + len(TEXT)) / N_WORDS, rel=1e-10
    )
    logs = sorted(map(math.log, found.values()))
    assert min(np.diff(logs)) > 1e-3
    assert logs[-1] - logs[0] > 0.3


def test_the_mean_of_perplexities_of_texts() -> None:
    """Cause: exp is taken before the mean, so that short and surprising texts weigh most; ends are not predicted.

    As ``perplexity`` of the library `evaluate` does: texts in one padded batch, ``<bos>`` before each, the mean
    negative log likelihood of each text's own tokens, exp of it, and the mean over texts as ``mean_perplexity``.
    """
    rows = [row.tolist() for row in V.encode(TEXT)]
    width = max(map(len, rows))
    ids = torch.tensor([[V.bos, *row, *[V.pad] * (width - len(row))] for row in rows])
    mask = torch.tensor([[1] * (1 + len(row)) + [0] * (width - len(row)) for row in rows])
    with torch.no_grad():
        logits = NETWORK(input_ids=ids, attention_mask=mask).logits[:, :-1]
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
    each = torch.exp((losses * mask[:, 1:]).sum(1) / mask[:, 1:].sum(1))
    harness = float(each.mean())

    scores = MODEL.score(TEXT, NO_END)
    means = np.bincount(scores.sentence, weights=scores.log_prob) / np.bincount(scores.sentence)
    assert each.numpy() == pytest.approx(np.exp(-means), rel=1e-9)
    assert harness == pytest.approx(np.exp(-means).mean(), rel=1e-9)
    assert abs(harness / ours(NO_END) - 1) > 0.01
    weights = np.array([len(row) for row in rows]) / N_WORDS  # weighing texts by words, before exp, is our number
    assert math.exp(-(weights * means).sum()) == pytest.approx(ours(NO_END), rel=1e-10)


def test_per_piece_and_per_word() -> None:
    """Cause: the divisor. The log likelihood is the same; models with other pieces compare per word only.

    Perplexity per token, as most training loops print it, is the one per word to the power of words per piece.
    """
    rows = [row.tolist() for row in P.encode(TEXT)]
    total = 0.0
    for row in rows:
        table = log_probs(PIECE_NETWORK, [P.bos, *row])
        total += sum(float(table[k, piece]) for k, piece in enumerate([*row, P.eos]))
    pieces, words = sum(map(len, rows)) + len(TEXT), N_WORDS + len(TEXT)
    assert pieces > 1.3 * words
    scores = PIECE_MODEL.score(TEXT, DEFAULT)
    assert len(scores.log_prob) == words
    per_word, per_piece = math.exp(-scores.log_prob.mean()), math.exp(-total / pieces)
    assert scores.log_prob.sum() == pytest.approx(total, abs=1e-9)
    assert per_piece == pytest.approx(per_word ** (words / pieces), rel=1e-10)
    assert per_word > 1.3 * per_piece


def test_products_of_pieces_are_not_probabilities_of_words() -> None:
    """Cause: no word boundary. The end of a word is charged to the next word's first piece, so sums per sentence agree
    and single words do not; without the end of the sentence even sums differ, by the boundary after the last word.
    """
    begins = [n for n, piece in P.tokens.items() if piece[0] == "▁" or n == P.eos]
    scores = PIECE_MODEL.score(TEXT, DEFAULT)
    cut = P.align(TEXT)
    done, largest = 0, 0.0
    for i, row in enumerate(P.encode(TEXT)):
        table = log_probs(PIECE_NETWORK, [P.bos, *row.tolist()])
        at, naive, over = 0, [], []
        for count in [*cut.counts[done : done + len(TEXT[i])].tolist(), 1]:
            targets = [*row.tolist(), P.eos][at : at + count]
            naive.append(sum(float(table[at + k, target]) for k, target in enumerate(targets)))
            at += count
            over.append(float(torch.logsumexp(table[at, begins], 0)) if at <= len(row) else 0.0)
        done += len(TEXT[i])
        mine = scores.log_prob[scores.sentence == i]
        assert mine == pytest.approx(np.array(naive) + over - np.array([0.0, *over[:-1]]), abs=1e-9)
        assert mine.sum() == pytest.approx(sum(naive), abs=1e-9)
        short = PIECE_MODEL.score([TEXT[i]], NO_END).log_prob
        assert short.sum() == pytest.approx(sum(naive[:-1]) + over[-2], abs=1e-9)
        largest = max(largest, np.abs(mine - naive).max())
    assert largest > 0.1
