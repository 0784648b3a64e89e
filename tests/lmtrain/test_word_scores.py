"""Scores of words from pieces: against a known distribution of words, against sums to one, and against plain loops."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from truesource.generator.language_model import ScoringFrame, TokenScores
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.data import Batch
from truesource.lmtrain.model_registry import model_settings, network_architecture, network_names
from truesource.lmtrain.models import load_model
from truesource.lmtrain.pieces import scoring
from truesource.lmtrain.pieces.models import CausalPieceModel, MaskedPieceModel
from truesource.lmtrain.pieces.scoring import score_causal_words
from truesource.lmtrain.pieces.words import Marks, Pieces
from truesource.lmtrain.saving import save_model
from truesource.lmtrain.subword_vocabulary import SubwordVocabulary
from truesource.lmtrain.subwords import build_subword_tokenizer
from truesource.lmtrain.trained_models import as_language_model

PIECES = ["<bos>", "<eos>", "<pad>", "▁a", "▁b", "▁ab", "a", "b", "ab"]  # of the small examples
BOS, EOS, PAD = 0, 1, 2


class Spelt:
    """An aligner whose words name their pieces: ``▁a+b`` is the pieces ``▁a`` and ``b``."""

    marks = Marks((BOS,), (EOS,), None, PAD)
    begins = np.array([piece.startswith("▁") or piece == "<eos>" for piece in PIECES])

    def __len__(self) -> int:
        return len(PIECES)

    def align(self, sentences: Sequence[Sequence[str]]) -> Pieces:
        cuts = [[PIECES.index(piece) for piece in word.split("+")] for sentence in sentences for word in sentence]
        return Pieces(
            np.array([i for cut in cuts for i in cut], dtype=np.int64),
            np.array([len(cut) for cut in cuts], dtype=np.int64),
            np.array([len(sentence) for sentence in sentences], dtype=np.int64),
            np.zeros(len(cuts), dtype=bool),
        )


def score_spelt(next_piece: Callable[[tuple[int, ...]], np.ndarray], sentences: list[list[str]]) -> TokenScores:
    """Scores under a model that is a function from pieces so far, <bos> included, to probabilities of the next."""

    @contextmanager
    def predictor(_: nn.Module) -> Iterator[Callable[[nn.Module, Batch], Tensor]]:
        def predict(_: nn.Module, batch: Batch) -> Tensor:
            ids, width = batch["input_ids"].tolist(), batch["input_ids"].shape[1]
            places = [divmod(at, width) for at in batch["positions"].tolist()]
            with np.errstate(divide="ignore"):
                return torch.from_numpy(np.log([next_piece(tuple(ids[row][: to + 1])) for row, to in places]))

        yield predict

    return score_causal_words(nn.Linear(1, 1), predictor, Spelt(), sentences, ScoringFrame())


class KnownWords:
    """Words that follow each other with known probabilities, and what that says about their pieces.

    The probability of the next piece is worked out from that of the words alone: of all words that go on from
    where the last one ended, those whose pieces begin like the open one.
    """

    words = ("▁a", "▁a+b", "▁a+b+a", "▁b", "▁b+a", "▁ab+b", "▁b+ab")

    def __init__(self, seed: int, stray: float = 0.0) -> None:
        rng = np.random.default_rng(seed)
        self.stray = stray  # mass of a continuation where a word has to begin
        self.after = {
            word: dict(zip([*self.words, "end"], rng.dirichlet(np.ones(8)), strict=True))
            for word in ("start", *self.words)
        }

    def beginning(self, previous: str, pieces: tuple[str, ...]) -> float:
        return sum(
            p
            for word, p in self.after[previous].items()
            if word != "end" and tuple(word.split("+"))[: len(pieces)] == pieces
        )

    def next_piece(self, ids: tuple[int, ...]) -> np.ndarray:
        names = [PIECES[i] for i in ids[1:]]
        starts = [i for i, name in enumerate(names) if name.startswith("▁")] + [len(names)]
        words = ["+".join(names[i:j]) for i, j in itertools.pairwise(starts)]
        out = np.zeros(len(PIECES))
        if not words:
            self._open(out, "start", 1.0 - self.stray)
            out[PIECES.index("ab")] += self.stray
            return out
        previous, pieces = (["start", *words])[-2], tuple(words[-1].split("+"))
        mass = self.beginning(previous, pieces)
        for i, piece in enumerate(PIECES):
            if i not in (BOS, EOS, PAD) and not piece.startswith("▁"):
                out[i] = self.beginning(previous, (*pieces, piece)) / mass
        if words[-1] in self.words:
            self._open(out, words[-1], self.after[previous][words[-1]] / mass)
        return out

    def _open(self, out: np.ndarray, previous: str, share: float) -> None:
        for i, piece in enumerate(PIECES):
            if piece.startswith("▁"):
                out[i] = share * self.beginning(previous, (piece,))
        out[EOS] = share * self.after[previous]["end"]

    def truth(self, sentence: list[str]) -> list[float]:
        return [math.log(self.after[u][w]) for u, w in itertools.pairwise(["start", *sentence, "end"])]

    def naive(self, sentence: list[str]) -> list[float]:
        """Products of piece probabilities, as without the correction."""
        ids, out = [BOS], []
        for word in [*sentence, "<eos>"]:
            total = 0.0
            for piece in word.split("+"):
                total += math.log(self.next_piece(tuple(ids))[PIECES.index(piece)])
                ids.append(PIECES.index(piece))
            out.append(total)
        return out


SHORT = [list(words) for n in range(3) for words in itertools.product(KnownWords.words, repeat=n)]


@pytest.mark.parametrize("seed", [0, 1])
def test_word_probabilities_are_recovered_from_those_of_pieces(seed: int) -> None:
    """The strongest check: pieces of a model of words give back that model, and their bare products do not."""
    known = KnownWords(seed)
    for ids in ((BOS,), (BOS, 3), (BOS, 3, 7), (BOS, 3, 7, 6), (BOS, 5, 7, 4)):
        assert known.next_piece(ids).sum() == pytest.approx(1.0, abs=1e-12)
    scores = score_spelt(known.next_piece, SHORT)
    expected = [value for sentence in SHORT for value in known.truth(sentence)]
    assert scores.log_prob == pytest.approx(expected, abs=1e-10)
    naive = np.array([value for sentence in SHORT for value in known.naive(sentence)])
    assert np.abs(naive - expected).max() > 0.5
    totals, bare = (np.bincount(scores.sentence, weights=x) for x in (scores.log_prob, naive))
    assert totals == pytest.approx(bare, abs=1e-10)  # the same sentence probabilities, shared out differently


def test_mass_on_pieces_that_begin_no_word_is_lost_at_the_start_and_nowhere_else() -> None:
    plain, stray = (score_spelt(KnownWords(0, stray=mass).next_piece, SHORT) for mass in (0.0, 0.25))
    difference = plain.log_prob - stray.log_prob
    assert difference[plain.position == 0] == pytest.approx(-math.log(0.75), abs=1e-10)
    assert difference[plain.position > 0] == pytest.approx(0.0, abs=1e-10)


def random_pieces(seed: int) -> Callable[[tuple[int, ...]], np.ndarray]:
    """A model of pieces without any structure: every text so far has a distribution of its own."""

    def next_piece(ids: tuple[int, ...]) -> np.ndarray:
        return np.random.default_rng([seed, *ids]).dirichlet(np.full(len(PIECES), 0.8))

    return next_piece


@pytest.mark.parametrize("context", [[], ["▁a"], ["▁b+ab", "▁a+a"]])
def test_words_cuts_and_the_end_sum_to_one(context: list[str]) -> None:
    """All words in all cuts of up to four pieces, longer words and the mass on special tokens counted exactly."""
    model, most = random_pieces(5), 4
    begin = [piece for piece in PIECES if piece.startswith("▁")]
    inner = [p for i, p in enumerate(PIECES) if i not in (BOS, EOS, PAD) and not p.startswith("▁")]
    words = ["+".join((b, *t)) for b in begin for n in range(most) for t in itertools.product(inner, repeat=n)]
    scores = score_spelt(model, [[*context, word] for word in words] + [context])
    at = scores.position == len(context)
    corrected, ends = scores.log_prob[at & (scores.sentence < len(words))], scores.log_prob[at][-1]

    prefix = (BOS, *(PIECES.index(piece) for word in context for piece in word.split("+")))
    after = model(prefix)
    denominator = after[Spelt.begins].sum() if context else 1.0
    lost = 0.0 if context else float(after[~Spelt.begins].sum())
    naive = after[EOS]
    for word in words:
        ids, p = prefix, 1.0
        for piece in word.split("+"):
            p *= model(ids)[PIECES.index(piece)]
            ids = (*ids, PIECES.index(piece))
        naive += p
        following = model(ids)
        lost += p * (following[BOS] + following[PAD]) / denominator
        if len(word.split("+")) == most:
            lost += p * sum(following[PIECES.index(piece)] for piece in inner) / denominator
    assert np.exp(corrected).sum() + np.exp(ends) + lost == pytest.approx(1.0, abs=1e-10)
    assert abs(naive + lost - 1.0) > 0.1
    assert np.exp(corrected).sum() + np.exp(ends) < 1.0


WORDS = ["cat", "cats", "the", "theatre", "``", "-LRB-", "sat"]
CORPUS = [WORDS, *([w] * 3 for w in WORDS)]


def random_model(kind: str, architecture: str) -> CausalPieceModel | MaskedPieceModel:
    """Untrained, with large weights, so that every position has a distribution of its own; in float64."""
    objective = network_architecture(architecture).objective
    tokenizer = build_subword_tokenizer(CORPUS, kind, 34, objective=objective)  # type: ignore[arg-type]
    config = model_settings(architecture=architecture, layers=1, heads=2, dim=16, max_positions=24)
    torch.manual_seed(0)
    network = network_architecture(architecture).build(config, SubwordVocabulary(tokenizer))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    model = as_language_model(network.double(), tokenizer, "random")
    assert isinstance(model, CausalPieceModel | MaskedPieceModel)
    return model


MODELS = {
    (kind, architecture): random_model(kind, architecture)
    for kind in ("bpe", "unigram")
    for architecture in ("gpt2", "bert")
}
CAUSAL, MASKED = MODELS["bpe", "gpt2"], MODELS["bpe", "bert"]
SENTENCES = st.lists(st.lists(st.sampled_from([*WORDS, "tea", "catΩ"]), max_size=4), max_size=5)
FRAME = st.builds(ScoringFrame, eos=st.booleans(), first=st.booleans(), unk=st.sampled_from(["token", "skip"]))


def one_by_one(
    model: CausalPieceModel | MaskedPieceModel, sentences: list[list[str]], frame: ScoringFrame
) -> tuple[list[tuple[int, int, float]], list[int]]:
    """(sentence, position, log probability) from the definition, one context at a time, and impossible sentences."""
    v = SubwordVocabulary(model.tokenizer)

    def log_softmax(ids: list[int], place: int) -> Tensor:
        with torch.no_grad():
            return torch.log_softmax(model.model(input_ids=torch.tensor([ids])).logits[0, place].double(), -1)

    rows, impossible = [], []
    for s, sentence in enumerate(sentences):
        cuts = [[v._model.token_to_id(piece.value) or v.unk for piece in v._model.tokenize("▁" + w)] for w in sentence]
        if frame.unk == "token" and any(v.unk in cut for cut in cuts):
            impossible.append(s)
            continue
        for i, cut in enumerate([*cuts, [v.eos]] if model.objective == "causal" else cuts):
            left = [v.bos, *itertools.chain(*cuts[:i])]
            value = 0.0
            if model.objective == "causal":
                begins = [n for n, piece in v.tokens.items() if piece[0] == "▁" or n == v.eos]
                for k, piece in enumerate(cut):
                    value += float(log_softmax([*left, *cut[:k]], -1)[piece])
                if i > 0:
                    value -= float(torch.logsumexp(log_softmax(left, -1)[begins], 0))
                if i < len(cuts):
                    value += float(torch.logsumexp(log_softmax([*left, *cut], -1)[begins], 0))
            else:
                right = [*itertools.chain(*cuts[i + 1 :]), v.eos]
                for k, piece in enumerate(cut):
                    hidden = [v.mask] * (len(cut) - k)
                    value += float(log_softmax([*left, *cut[:k], *hidden, *right], len(left) + k)[piece])
            skipped = frame.unk == "skip" and v.unk in cut
            first = i == 0 and not frame.first
            if not (skipped or first or (i == len(cuts) and not frame.eos)):
                rows.append((s, i, value))
    return rows, impossible


@pytest.mark.long
@settings(max_examples=12, deadline=None)
@pytest.mark.parametrize("key", MODELS, ids="-".join)
@given(sentences=SENTENCES, frame=FRAME)
def test_scores_are_those_of_a_plain_loop(
    key: tuple[str, str], sentences: list[list[str]], frame: ScoringFrame
) -> None:
    model = MODELS[key]
    scores = model.score(sentences, frame)
    expected, impossible = one_by_one(model, sentences, frame)
    assert list(zip(scores.sentence.tolist(), scores.position.tolist(), strict=True)) == [row[:2] for row in expected]
    assert scores.log_prob == pytest.approx([row[2] for row in expected], abs=1e-9)
    assert (scores.n_sentences, scores.frame, scores.impossible.tolist()) == (len(sentences), frame, impossible)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_words_and_end_add_up_to_the_pieces(kind: str) -> None:
    model = MODELS[kind, "gpt2"]
    v = SubwordVocabulary(model.tokenizer)
    rng = np.random.default_rng(1)
    sentences = [[WORDS[i] for i in rng.integers(7, size=rng.integers(0, 5))] for _ in range(20)]
    scores = model.score(sentences, ScoringFrame())
    without = model.score(sentences, ScoringFrame(eos=False))
    begins = [n for n, piece in v.tokens.items() if piece[0] == "▁" or n == v.eos]
    for i, row in enumerate(v.encode(sentences)):
        with torch.no_grad():
            logits = model.model(input_ids=torch.tensor([[v.bos, *row.tolist()]])).logits[0]
        log_probs = torch.log_softmax(logits, -1)
        pieces = float(log_probs[torch.arange(len(row)), torch.from_numpy(row)].sum())
        assert scores.log_prob[scores.sentence == i].sum() == pytest.approx(
            pieces + float(log_probs[-1, v.eos]), abs=1e-9
        )
        boundary = float(torch.logsumexp(log_probs[-1, begins], 0)) if len(row) else 0.0
        assert without.log_prob[without.sentence == i].sum() == pytest.approx(pieces + boundary, abs=1e-9)


@pytest.mark.parametrize("model", [CAUSAL, MASKED], ids=["causal", "masked"])
@pytest.mark.parametrize("tokens", [1, 37])
def test_scores_do_not_depend_on_the_batches(
    model: CausalPieceModel | MaskedPieceModel, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    sentences = [[WORDS[i] for i in rng.integers(7, size=rng.integers(0, 5))] for _ in range(30)]
    usual = model.score(sentences, ScoringFrame())
    monkeypatch.setattr(scoring, "batch_budget", lambda size: tokens)
    other = model.score(sentences, ScoringFrame())
    assert other.log_prob == pytest.approx(usual.log_prob, abs=1e-9)
    assert np.array_equal(other.position, usual.position)


@pytest.mark.parametrize(("model", "most"), [(CAUSAL, 23), (MASKED, 22)], ids=["causal", "masked"])
def test_a_sentence_longer_than_the_positions_is_named(model: CausalPieceModel | MaskedPieceModel, most: int) -> None:
    """``Ω`` is two pieces: the marker and <unk>; they count like all others."""
    long = ["Ω"] * (most // 2) + ["cat"] * (most % 2)
    assert SubwordVocabulary(model.tokenizer).align([["cat"]]).counts.tolist() == [1]
    model.score([long], ScoringFrame(unk="skip"))
    with pytest.raises(InputError, match=f"sentence 2 has {most + 1} pieces, but the model takes at most {most}"):
        model.score([["cat"], [*long, "cat"]], ScoringFrame())


@pytest.mark.parametrize("architecture", sorted(set(network_names()) - {"diffusion"}))
def test_every_architecture_saved_and_loaded_scores_words(architecture: str, tmp_path: Path) -> None:
    """Through the fast path, which runs the output layer where it is needed, and through the one for all models."""
    objective = network_architecture(architecture).objective
    tokenizer = build_subword_tokenizer(CORPUS, "unigram", 34, objective=objective)
    network = network_architecture(architecture).build(
        model_settings(architecture=architecture, layers=1, dim=16), SubwordVocabulary(tokenizer)
    )
    made = as_language_model(network, tokenizer, "made")
    assert isinstance(made, CausalPieceModel | MaskedPieceModel)
    sentences = [WORDS[:3], [], WORDS[2:6]]
    expected = made.score(sentences, ScoringFrame())
    whole = type(made)(network, tokenizer, made.aligner, "whole").score(sentences, ScoringFrame())
    assert whole.log_prob == pytest.approx(expected.log_prob, abs=1e-5)
    save_model(tmp_path / "m", network, tokenizer)
    loaded = load_model(tmp_path / "m", device="cpu")
    assert (type(loaded), loaded.name, loaded.objective) == (type(made), "m", objective)
    assert loaded.score(sentences, ScoringFrame()).log_prob == pytest.approx(expected.log_prob, abs=1e-6)


def test_there_are_no_distributions_over_words() -> None:
    for model in (CAUSAL, MASKED):
        assert model.vocabulary is None
        with pytest.raises(InputError, match="cuts words into pieces"):
            next(iter(model.distributions([["cat"]])))
        with pytest.raises(InputError, match="cuts words into pieces"):
            model.next_token([])


def test_the_reading_says_how_words_were_scored() -> None:
    assert CAUSAL.reading == "pieces/bow/bos=2/eos=3"
    assert MASKED.reading == "pieces/pll-word-l2r/before=2/after=3"


def test_weights_that_are_not_numbers_are_reported() -> None:
    broken = random_model("bpe", "gpt2")
    with torch.no_grad():
        next(broken.model.parameters()).fill_(torch.nan)
    with pytest.raises(InputError, match="not finite"):
        broken.score([["cat"]], ScoringFrame())


def test_a_tokeniser_of_another_model_is_refused() -> None:
    larger = build_subword_tokenizer([*CORPUS, list("xyzuvw")], "bpe", 44)
    with pytest.raises(
        InputError, match=r"does not belong to this model: it has token numbers up to 43 .* 34 word vec"
    ):
        as_language_model(CAUSAL.model, larger, "mismatch")
