"""n-gram models of pieces: against dictionaries over pieces, sums over cuts, files, samples, what is refused."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from reference_ngrams import BOS, EOS, UNK, KneserNey, Mle
from scipy.special import logsumexp
from scipy.stats import chisquare
from walked_texts import walked

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import documents
from truesource.evaluation.tokenisation.estimators.exact import exact_sum
from truesource.evaluation.tokenisation.lattice import LatticeBuilder
from truesource.generator.language_model import LanguageModel, ScoringFrame, assemble_scores
from truesource.generator.piece_model import IncrementalScorer, LatticeScorer, TokenisedModel
from truesource.grammar.support.arrays import IntArray
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.ngram.models import NgramPieceModel, make_ngram
from truesource.lmtrain.architectures.ngram.reading import log_mass
from truesource.lmtrain.architectures.ngram.trie import Smoothing, adjust, count_ngrams, read_stream
from truesource.lmtrain.decoding.alphabet import StepwiseModel
from truesource.lmtrain.decoding.decode import draw
from truesource.lmtrain.decoding.settings import Decoding
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.models import load_model
from truesource.lmtrain.pieces.marking import MARKER
from truesource.lmtrain.pieces.models import CausalPieceModel
from truesource.lmtrain.subword_vocabulary import SubwordVocabulary
from truesource.lmtrain.subwords import build_subword_tokenizer
from truesource.lmtrain.training import train

Sentences = list[list[str]]
KINDS = ["bpe", "unigram"]
SMOOTHINGS: list[Smoothing] = ["mle", "kneser_ney"]
WORDS = st.text("abc", min_size=1, max_size=4)
CORPUS = st.lists(st.lists(WORDS, max_size=4), min_size=1, max_size=15).filter(lambda corpus: any(map(any, corpus)))
TEXTS = st.lists(st.lists(st.text("abcz", min_size=1, max_size=4), max_size=4), max_size=5)
FRAME = st.builds(ScoringFrame, eos=st.booleans(), first=st.booleans(), unk=st.sampled_from(["token", "skip"]))


def fit(corpus: Sentences, order: int, smoothing: Smoothing, kind: Any = "bpe", size: int = 30) -> NgramPieceModel:
    tokenizer = build_subword_tokenizer(corpus, kind, size)
    v = SubwordVocabulary(tokenizer)
    trie = count_ngrams(read_stream(corpus, v), order, n_tokens=len(v), bos=v.bos, eos=v.eos)
    model = make_ngram(adjust(trie, smoothing), smoothing, tokenizer, "n")
    assert isinstance(model, NgramPieceModel)
    return model


class Reference:
    """A dictionary model whose words are the pieces of a model."""

    def __init__(self, model: NgramPieceModel, corpus: Sentences) -> None:
        self.v = SubwordVocabulary(model.tokenizer)
        self.pieces = [piece for number, piece in self.v.tokens.items() if number >= 5]
        kind = Mle if model.estimate.smoothing == "mle" else KneserNey
        self.model = kind([self.names(row) for row in self.v.encode(corpus)], model.estimate.trie.order, self.pieces)
        self.model.n_events = len(self.pieces) + 1  # no <unk>

    def names(self, row: Sequence[int]) -> list[str]:
        return [self.v.tokens[int(i)] for i in row]

    def p(self, piece: str, before: list[str]) -> float:
        return 0.0 if piece == UNK else self.model.p(piece, before)

    def log_prob(self, row: Sequence[int]) -> float:
        text = [*self.names(row), EOS]
        return math.fsum(log(self.p(piece, text[:i])) for i, piece in enumerate(text))

    def begins(self, before: list[str]) -> float:
        """Probability that a word begins, or the text ends."""
        return math.fsum(self.p(piece, before) for piece in (*self.pieces, EOS) if piece[0] == MARKER or piece == EOS)

    def words(self, sentence: list[str], skip: bool) -> tuple[list[float], list[bool]]:
        """Of every word and the end; and which words are not spelt."""
        before: list[str] = []
        values, unknown = [], []
        opening = 1.0
        for word in sentence:
            names = self.names(self.v.encode([[word]])[0])
            unknown.append(UNK in names)
            total = 0.0
            for piece in names:
                total += 0.0 if skip and piece == UNK else log(self.p(piece, before))
                before.append(piece)
            after = self.begins(before)
            values.append(total + log(after) - (log(opening) if opening else 0.0))
            opening = after
        values.append(log(self.p(EOS, before)) - (log(opening) if opening else 0.0))
        return [v if np.isfinite(v) else -math.inf for v in values], unknown


def log(p: float) -> float:
    return math.log(p) if p > 0.0 else -math.inf


@pytest.mark.long
@given(corpus=CORPUS, texts=TEXTS, order=st.integers(1, 4), kind=st.sampled_from(SMOOTHINGS), frame=FRAME)
@settings(max_examples=60, deadline=None)
def test_words_are_scored_from_their_pieces(
    corpus: Sentences, texts: Sentences, order: int, kind: Smoothing, frame: ScoringFrame
) -> None:
    """Each word times the chance that it is over, by plain sums over a dictionary of pieces."""
    model: LanguageModel = fit(corpus, order, kind)
    texts += corpus[:3]
    truth = Reference(model, corpus)  # type: ignore[arg-type]
    values, unknown = [], []
    for text in texts:
        found, bad = truth.words(text, frame.unk == "skip")
        if frame.unk == "token" and any(bad):
            found = [-math.inf] * len(found)
        values.append(np.array(found))
        unknown.append(np.array(bad, dtype=bool))
    expected = assemble_scores(values, unknown, frame)
    scores = model.score(texts, frame)
    assert scores.log_prob == pytest.approx(expected.log_prob, abs=1e-10)
    for name in ("sentence", "position", "impossible"):
        assert np.array_equal(getattr(scores, name), getattr(expected, name))


@pytest.mark.long
@given(corpus=CORPUS, texts=TEXTS, order=st.integers(1, 4), kind=st.sampled_from(SMOOTHINGS))
@settings(max_examples=40, deadline=None)
def test_whole_texts_and_walks_are_those_of_a_dictionary(
    corpus: Sentences, texts: Sentences, order: int, kind: Smoothing
) -> None:
    model: TokenisedModel = fit(corpus, order, kind)
    truth = Reference(model, corpus)  # type: ignore[arg-type]
    rows = [row for row in truth.v.encode([*texts, *corpus[:2]]) if truth.v.unk not in row]
    expected = [truth.log_prob(row) for row in rows]
    assert model.log_probs(rows) == pytest.approx(expected, abs=1e-10)
    scorer: IncrementalScorer = model.incremental_scorer()
    assert walked(scorer, rows) == pytest.approx(expected, abs=1e-10)
    assert scorer.steps == sum(map(len, rows))
    assert (model.around, model.longest) == ((1, 1), None)


CORPUS_OF_CUTS = [s.split() for s in ("ab abab", "ab ba", "abab", "ba ab ab", "b a", "abb ab", "aab ba b", "ab")]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_words_and_end_add_up_to_the_pieces(order: int, kind: str) -> None:
    model = fit(CORPUS_OF_CUTS, order, "kneser_ney", kind, 12)
    scores = model.score(CORPUS_OF_CUTS, ScoringFrame())
    totals = np.bincount(scores.sentence, weights=scores.log_prob)
    rows = SubwordVocabulary(model.tokenizer).encode(CORPUS_OF_CUTS)
    assert totals == pytest.approx(model.log_probs(rows), abs=1e-10)
    assert not len(model.score([["z"]], ScoringFrame()).log_prob)  # no piece spells it
    assert model.score([["z", "ab"]], ScoringFrame(unk="skip")).position.tolist() == [1, 2]


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_contexts_are_what_the_model_remembers(order: int, smoothing: Smoothing) -> None:
    """Equal endings are one context, and what may follow each, the end with it, sums to one (or, unseen, to none)."""
    model = fit(CORPUS_OF_CUTS, order, smoothing, "unigram", 10)
    v = SubwordVocabulary(model.tokenizer)
    truth = Reference(model, CORPUS_OF_CUTS)
    pieces = np.arange(5, len(v))
    scorer = model.incremental_scorer()
    contexts, texts = np.array([scorer.begin()]), [()]
    seen: dict[int, set[tuple[str, ...]]] = {}
    for _ in range(3):
        parents = np.repeat(np.arange(len(contexts)), len(pieces))
        tokens = np.tile(pieces, len(contexts))
        after = scorer.extend(contexts[parents], tokens)
        texts = [(*texts[i], v.tokens[t]) for i, t in zip(parents.tolist(), tokens.tolist(), strict=True)]
        for context, text in zip(after.tolist(), texts, strict=True):
            seen.setdefault(context, set()).add((BOS, *text)[1 - order :] if order > 1 else ())
        contexts = after
        if len(contexts) > 300:
            rows = np.random.default_rng(0).choice(len(contexts), 300, replace=False)
            contexts, texts = contexts[rows], [texts[i] for i in rows]
    endings = set(itertools.chain(*seen.values()))
    assert len(seen) <= len(endings)
    assert sum(map(len, seen.values())) == len(endings)  # an ending never has two contexts
    numbers = np.array([*seen])
    p = np.exp(scorer.log_prob(np.repeat(numbers, len(pieces)), np.tile(pieces, len(numbers))))
    totals = p.reshape(len(numbers), -1).sum(axis=1) + np.exp(scorer.log_end(numbers))
    if smoothing == "kneser_ney":
        assert totals == pytest.approx(np.ones(len(numbers)), abs=1e-10)
    else:
        assert set(np.round(totals, 10)) <= {0.0, 1.0}
    specials = [v.pad, v.unk, v.bos, v.mask]
    assert (scorer.log_prob(np.repeat(numbers, 4), np.tile(specials, len(numbers))) == -np.inf).all()
    for text, context in zip(texts[:20], contexts[:20].tolist(), strict=True):
        expected = log(truth.p(EOS, [*text]))
        assert scorer.log_end(np.array([context])).item() == pytest.approx(expected, abs=1e-10)
    scorer.keep(numbers[:1])
    assert scorer.begin() == model.incremental_scorer().begin()


def cuts(model: NgramPieceModel, text: str) -> Iterator[tuple[int, ...]]:
    """All rows of pieces that spell a text, its words marked."""
    v = SubwordVocabulary(model.tokenizer)
    spelling = "".join(MARKER + word for word in text.split())
    pieces = {piece: number for number, piece in v.tokens.items() if number >= 5}

    def rest(at: int) -> Iterator[tuple[int, ...]]:
        if at == len(spelling):
            yield ()
        for end in range(at + 1, len(spelling) + 1):
            if spelling[at:end] in pieces:
                for tail in rest(end):
                    yield (pieces[spelling[at:end]], *tail)

    return rest(0)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_sums_over_cuts_by_merged_contexts(order: int, smoothing: Smoothing) -> None:
    """Position by position with one term a context, against every cut scored whole."""
    model = fit(CORPUS_OF_CUTS, order, smoothing, "unigram", 14)
    v = SubwordVocabulary(model.tokenizer)
    text = "abab ba ab"
    rows = [np.array(cut) for cut in cuts(model, text)]
    expected = logsumexp(model.log_probs(rows))
    spelling = "".join(MARKER + word for word in text.split())
    scorer = model.incremental_scorer()
    states: list[dict[int, float]] = [{scorer.begin(): 0.0}, *({} for _ in spelling)]
    for at in range(len(spelling)):
        for number, piece in v.tokens.items():
            if number < 5 or not spelling.startswith(piece, at):
                continue
            contexts, token = np.array([*states[at]], dtype=np.int64), np.full(len(states[at]), number)
            gains = scorer.log_prob(contexts, token) + np.array([*states[at].values()])
            target = states[at + len(piece)]
            for context, gain in zip(scorer.extend(contexts, token).tolist(), gains, strict=True):
                target[context] = float(np.logaddexp(target.get(context, -np.inf), gain))
    last = states[-1]
    found = logsumexp(scorer.log_end(np.array([*last])) + np.array([*last.values()]))
    assert found == pytest.approx(expected, abs=1e-10)
    assert scorer.steps < sum(map(len, rows))


@pytest.mark.long
@given(corpus=CORPUS, order=st.integers(1, 4), kind=st.sampled_from(SMOOTHINGS), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_masses_are_sums_over_their_tokens(corpus: Sentences, order: int, kind: Smoothing, seed: int) -> None:
    model = fit(corpus, order, kind)
    n = model.reader.n_tokens
    members = np.random.default_rng(seed).random(n) < 0.5
    found = np.exp(log_mass(model.estimate, members))
    tokens = np.flatnonzero(members)
    nodes = np.arange(1 if order > 1 else 0, len(found))
    values, _ = model.reader.look_up(np.repeat(nodes, len(tokens)), np.tile(tokens, len(nodes)))
    expected = np.exp(values).reshape(len(nodes), -1).sum(axis=1)
    seen = model.reader.seen[nodes] | (kind == "kneser_ney")
    assert found[nodes][seen] == pytest.approx(expected[seen], abs=1e-12)
    if len(tokens):
        together = np.exp(model.incremental_scorer().log_any(nodes, tokens))
        assert together == pytest.approx(expected, abs=1e-12)  # unseen contexts too: nothing is expected after them


@pytest.mark.long
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_samples_have_the_probability_of_all_their_cuts(smoothing: Smoothing) -> None:
    """Chi-square of the spellings of one word and of the rest."""
    model = fit(CORPUS_OF_CUTS, 2, smoothing, "bpe", 11)
    tokens = SubwordVocabulary(model.tokenizer).tokens
    words = ["".join(letters) for k in range(1, 4) for letters in itertools.product("ab", repeat=k)]
    rows = [[np.array(cut) for cut in cuts(model, word)] for word in words]
    p = np.array([np.exp(model.log_probs(some)).sum() for some in rows])

    class Spelt:
        name = "spelt"
        alphabet = replace(model.alphabet, spell=lambda numbers: ["".join(tokens[i] for i in numbers)])
        stepper = staticmethod(model.stepper)

    stepwise: StepwiseModel = Spelt()
    texts = [text for (text,) in draw(stepwise, 3_000, Decoding(max_tokens=100), seed=4).sentences]
    counts, n = Counter(texts), len(texts)
    found = np.array([counts[MARKER + word] for word in words])
    assert not found[p == 0.0].any()
    large = n * p >= 5.0
    assert large.sum() >= 3
    observed, wanted = (np.append(x[large], n - x[large].sum()) for x in (found, n * p))
    assert chisquare(observed, wanted).pvalue > 1e-3
    whole: StepwiseModel = model
    spelt = draw(whole, 3_000, Decoding(max_tokens=100), seed=4).sentences
    assert spelt == [[word for word in text.split(MARKER) if word] for text in texts]


class Source:
    splits = ("train", "dev")

    def sentences(self, split: str) -> Sentences:
        return {"train": CORPUS_OF_CUTS, "dev": [["ab", "b"], ["a"], ["cab"]]}[split]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_a_finished_folder_comes_back(kind: Any, smoothing: Smoothing, tmp_path: Path) -> None:
    config = model_settings(architecture="ngram", order=3, smoothing=smoothing, tokenizer=kind, vocab_size=14)
    monitored: list[object] = []

    def monitor(model: object) -> dict[str, float]:
        monitored.append(model)
        return {"looked": 1.0}

    made = train(Source(), config, None, tmp_path / "m", seed=1, monitor=monitor)  # type: ignore[arg-type]
    again = train(Source(), config, None, tmp_path / "n", seed=2)
    assert isinstance(made, NgramPieceModel) and isinstance(again, NgramPieceModel)
    assert isinstance(monitored[0], NgramPieceModel)
    assert (tmp_path / "m" / "ngram.npz").read_bytes() == (tmp_path / "n" / "ngram.npz").read_bytes()
    assert made.name == f"ngram-3-{smoothing.replace('_', '-')}-{kind}14"
    assert (made.objective, made.vocabulary, made.reading) == ("causal", None, "pieces/bow/bos=2/eos=3")
    texts = Source().sentences("train")
    v = SubwordVocabulary(made.tokenizer)
    rows = v.encode(texts)
    assert np.array_equal(made.log_probs(rows), again.log_probs(rows))
    record = json.loads((tmp_path / "m" / "training.json").read_text())
    final = record["final"]
    assert (record["vocabulary"], record["parameters"], final["looked"]) == (len(v) - 5, made.n_ngrams, 1.0)
    tokens = sum(len(row) + 1 for row in rows)
    assert (final["tokens"], final["loss"]) == (tokens, pytest.approx(-made.log_probs(rows).sum() / tokens, abs=1e-10))
    dev = v.encode(Source().sentences("dev")[:2])
    if smoothing == "kneser_ney":  # the third has a letter that no piece holds
        assert final["dev_sentences_covered"] == pytest.approx(2 / 3)
        assert final["dev_loss"] == pytest.approx(-made.log_probs(dev).sum() / sum(len(row) + 1 for row in dev))
    card = (tmp_path / "m" / "README.md").read_text()
    assert f"cut into {len(v) - 5} {kind} pieces" in card and "all others" not in card
    cut = made.pieces.read("ab abb")
    assert made.pieces.inventory.ids[cut.canonical].tolist() == v.encode([["ab", "abb"]])[0].tolist()


def test_the_tokeniser_must_be_that_of_the_counts(tmp_path: Path) -> None:
    pieces = model_settings(architecture="ngram", tokenizer="bpe", vocab_size=14)
    train(Source(), pieces, None, tmp_path / "m", seed=1)
    train(Source(), model_settings(architecture="ngram"), None, tmp_path / "w", seed=1)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "m" / name).write_bytes((tmp_path / "w" / name).read_bytes())
    with pytest.raises(InputError, match="not the one that training wrote"):
        load_model(tmp_path / "m")
    (tmp_path / "m" / "training.json").unlink()
    with pytest.raises(InputError, match="not the one of this n-gram model"):
        load_model(tmp_path / "m")
    with pytest.raises(InputError, match="of two models"):
        made = fit(CORPUS_OF_CUTS, 2, "mle", size=14)
        make_ngram(made.estimate.trie, "mle", build_subword_tokenizer([["abc"]], "bpe", 11), "n")


def test_what_a_model_of_pieces_cannot_say_or_read(tmp_path: Path) -> None:
    model = fit(CORPUS_OF_CUTS, 2, "kneser_ney")
    for ask in (lambda: model.distributions([["ab"]]), lambda: model.next_token(["ab"])):
        with pytest.raises(InputError, match="n cuts words into pieces and has no list of words") as refusal:
            ask()
        with pytest.raises(InputError) as other:
            CausalPieceModel.next_token(model, [])  # type: ignore[arg-type]
        assert str(refusal.value) == str(other.value)
    with pytest.raises(InputError, match="vocab_size 8 is too small"):
        train(
            [["abc", "def"]],
            model_settings(architecture="ngram", tokenizer="bpe", vocab_size=8),
            None,
            tmp_path / "m",
            seed=0,
        )
    assert list(tmp_path.iterdir()) == []
    assert not len(model.log_probs([]))
    assert model.score([], ScoringFrame()).n_sentences == 0
    empty: IntArray = np.zeros(0, dtype=np.int64)
    assert model.log_probs([empty]) == pytest.approx(
        model.incremental_scorer().log_end(np.array([model.incremental_scorer().begin()]))
    )


def test_presets_take_either_tokeniser() -> None:
    from truesource.run.models import ModelEntry

    for preset in ("tiny", "paper"):
        for kind in KINDS:
            model = {"architecture": "ngram", "tokenizer": kind, "vocab_size": 100}
            shape, training = ModelEntry(name="n", preset=preset, model=model).resolve()
            assert (shape.tokenizer, shape.vocab_size, shape.min_count, training) == (kind, 100, 1, None)
    with pytest.raises(ValueError, match="min_count is a setting of the word tokenizer"):
        ModelEntry(name="n", model={"architecture": "ngram", "tokenizer": "bpe", "vocab_size": 100, "min_count": 2})


def uniform_builder(model: NgramPieceModel) -> LatticeBuilder:
    """Of lattices whose pieces all score alike."""
    return LatticeBuilder(model.pieces.inventory, np.zeros(len(model.pieces.inventory.pieces)))


class StepByStep:
    """A scorer that hides from `exact_sum` that its model passes over whole lattices."""

    def __init__(self, scorer: IncrementalScorer) -> None:
        self._scorer = scorer

    def __getattr__(self, name: str) -> Any:
        if name == "sum_paths":
            raise AttributeError(name)
        return getattr(self._scorer, name)


class Stepwise:
    """A model read through `StepByStep`."""

    def __init__(self, model: NgramPieceModel) -> None:
        self._model = model

    def incremental_scorer(self) -> Any:
        return StepByStep(self._model.incremental_scorer())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(CORPUS, st.integers(1, 4), st.sampled_from(SMOOTHINGS), WORDS, st.integers(1, 60))
def test_one_pass_over_a_lattice_finds_what_steps_find(
    corpus: Sentences, order: int, smoothing: Smoothing, word: str, most: int
) -> None:
    model = fit(corpus, order, smoothing)
    known = {character for sentence in corpus for w in sentence for character in w}
    assume(set(word) <= known)
    found = documents(model, [f"{word} {word}"], uniform_builder(model))
    assume(len(found))
    document = found.documents[0]
    results: list[Any] = []
    for reader in (model, Stepwise(model)):
        assert isinstance(reader.incremental_scorer(), LatticeScorer) == (reader is model)
        try:
            results.append(exact_sum(reader, document, EstimatorSettings(most_prefixes=most)))
        except InputError as error:
            results.append(str(error))
    one, many = results
    if isinstance(one, str) or isinstance(many, str):
        assert one == many
        return
    assert (one.contexts, one.steps) == (many.contexts, many.steps)
    assert one.log_dropped == many.log_dropped == -math.inf
    assert one.log_p == pytest.approx(many.log_p, rel=1e-12, abs=1e-12)


@pytest.mark.long
def test_a_long_text_has_more_states_than_the_pass_makes_room_for_at_first() -> None:
    model = fit([["ab", "abc", "cab"], ["bca", "aab"]], 3, "kneser_ney", size=20)
    text = " ".join(["abcab", "cabba", "aabbc"] * 20)
    document = documents(model, [text], uniform_builder(model)).documents[0]
    one, many = (exact_sum(reader, document, EstimatorSettings()) for reader in (model, Stepwise(model)))
    assert one.contexts == many.contexts > 200
    assert one.log_p == pytest.approx(many.log_p, rel=1e-12)
