"""Sums over segmentations with byte tokens, against all token sequences that `tokenizers` decodes to the text."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from byte_tokenizers import (
    E_ACUTE,
    MARKER,
    SPACE,
    ByteModel,
    bpe,
    byte_token,
    decoder,
    llama,
    sequences,
    unigram,
    with_two_tokens_of_one_spelling,
)
from enumerated_cuts import log_sum
from hypothesis import given, settings
from hypothesis import strategies as st
from piece_models import END
from tokenizers import Tokenizer, decoders

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.ambiguity import measure_ambiguity
from truesource.evaluation.tokenisation.canonical import local_canonicality
from truesource.evaluation.tokenisation.documents import Document, documents
from truesource.evaluation.tokenisation.estimators.exact import exact
from truesource.evaluation.tokenisation.estimators.registry import ESTIMATORS
from truesource.evaluation.tokenisation.lattice import (
    LatticeBuilder,
    best_path,
    count_paths,
    fit_scores,
    uniform_scores,
)
from truesource.evaluation.tokenisation.paths import n_best
from truesource.evaluation.tokenisation.preparation import builder_for
from truesource.evaluation.tokenisation.results import evaluate_documents
from truesource.evaluation.tokenisation.words import word_log_probs
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.ngram.reading import NgramScorer, Reader
from truesource.lmtrain.architectures.ngram.trie import Stream, adjust, count_ngrams, estimate
from truesource.lmtrain.pieces.inventory import read_pieces

ALL = bytes(range(256))
SMALL = SPACE + b"a" + E_ACUTE
MAKERS: dict[str, Callable[[], Tokenizer]] = {
    "bpe": lambda: bpe(SMALL),
    "unigram": lambda: unigram(SMALL),
    "two tokens of one spelling": lambda: with_two_tokens_of_one_spelling(SMALL),
    "bytes of the marker": lambda: bpe(SPACE + b"a" + MARKER, ("▁", "a", "▁a")),
    "some bytes of a letter": lambda: bpe(b"a" + E_ACUTE[:1]),
    "letters without a piece": lambda: unigram(SMALL, ("▁", "a", "▁a")),
}
FEW = EstimatorSettings(samples=6, candidates=4, particles=4, replicates=2)
LEAST = {"tolerance": 0.0, "iterations": 20}  #: EM that does not stop early


@cache
def decoded(name: str, text: str, longest: int = 4) -> list[tuple[int, ...]]:
    """All sequences of up to ``longest`` tokens that a tokeniser decodes to a text."""
    return list(sequences(MAKERS[name](), text, longest))


def document_of(model: ByteModel, text: str, builder: LatticeBuilder | None = None) -> Document:
    return documents(model, [text], builder or LatticeBuilder(model.pieces.inventory)).documents[0]


def segmentations(model: ByteModel, document: Document) -> list[tuple[int, ...]]:
    """Token sequences of all paths of a lattice."""
    lattice = document.lattice
    paths = n_best(lattice, count_paths(lattice)).each()
    return [tuple(model.pieces.inventory.ids[lattice.piece[arcs]].tolist()) for arcs in paths]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bpe", "aé"),
        ("bpe", "é a"),
        ("bpe", " é"),
        ("unigram", "aé"),
        ("unigram", "a a"),
        ("two tokens of one spelling", "a a"),
        ("two tokens of one spelling", " aé"),
        ("bytes of the marker", "a a"),
        ("some bytes of a letter", "aéa"),
        ("letters without a piece", "aé"),
        ("letters without a piece", "é a"),
    ],
)
@pytest.mark.parametrize("order", [2, None])
def test_sums_are_over_all_token_sequences_that_decode_to_the_text(name: str, text: str, order: int | None) -> None:
    backend = MAKERS[name]()
    model = ByteModel(backend, order=order, seed=7)
    document = document_of(model, text)
    rows = decoded(name, text)
    assert sorted(segmentations(model, document)) == sorted(rows)
    truth = log_sum(model.log_prob_of(row) for row in rows)
    found = exact(model, document, FEW)
    assert (found.bound, found.log_p) == ("exact", pytest.approx(truth, abs=1e-12))
    own = backend.encode(text, add_special_tokens=False).ids
    assert model.pieces.inventory.ids[document.text.canonical].tolist() == own


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "text", "longest"),
    [
        ("bpe", "aé a", 6),
        ("unigram", "éa é", 6),
        ("two tokens of one spelling", "a a a", 5),
        ("bytes of the marker", "a aa", 6),
    ],
)
def test_no_longer_sequence_decodes_to_the_text(name: str, text: str, longest: int) -> None:
    backend = MAKERS[name]()
    model = ByteModel(backend, order=3)
    document = document_of(model, text)
    rows = decoded(name, text, longest)
    assert sorted(segmentations(model, document)) == sorted(rows)
    truth = log_sum(model.log_prob_of(row) for row in rows)
    assert exact(model, document, FEW).log_p == pytest.approx(truth, abs=1e-12)


def test_the_space_that_a_tokeniser_adds_is_a_part_of_the_text() -> None:
    """A decoder drops the first space, whether it was there or not; the sum is over the sequences that write it."""
    backend = bpe(SPACE + b"a", ("▁", "a", "▁a"), prefix=True)
    model = ByteModel(backend, order=2)
    document = document_of(model, "a a")
    unstripped = bpe(SPACE + b"a", ("▁", "a", "▁a"))
    rows = list(sequences(unstripped, " a a", 4))
    assert sorted(segmentations(model, document)) == sorted(rows)
    assert {backend.decode(list(row)) for row in rows} == {"a a"}
    assert (byte_token(0x20), "a") in {tuple(map(unstripped.id_to_token, row[:2])) for row in rows}


def ngrams_of(backend: Tokenizer, texts: list[str], order: int) -> tuple[Reader, list[list[int]]]:
    """Kneser-Ney counts of random token sequences, with tokens before and after a text that are not pieces."""
    rng = np.random.default_rng(5)
    size = backend.get_vocab_size()
    rows = [rng.integers(1, size, rng.integers(2, 9)).tolist() for _ in range(200)]
    rows += [backend.encode(text).ids for text in texts]
    bos, eos = size, size + 1
    flat = [token for row in rows for token in (bos, *row, eos)]
    lengths = np.array([len(row) for row in rows])
    stream = Stream(np.array(flat, dtype=np.int32), np.cumsum(lengths + 2), lengths)
    trie = count_ngrams(stream, order, n_tokens=size + 2, bos=bos, eos=eos)
    emitted = np.append(np.arange(1, size), eos)
    return Reader(estimate(adjust(trie, "kneser_ney"), "kneser_ney", emitted), bos, eos), rows


class NgramOfTokens(ByteModel):
    """An n-gram model that reads whole lattices at once."""

    def __init__(self, backend: Tokenizer, reader: Reader) -> None:
        super().__init__(backend, order=2)
        self._reader = reader

    def incremental_scorer(self) -> NgramScorer:  # type: ignore[override]
        return NgramScorer(self._reader)

    def log_prob_of(self, tokens: tuple[int, ...]) -> float:  # type: ignore[override]
        lengths = np.array([len(tokens)])
        flat = np.array([self._reader.bos, *tokens, self._reader.eos], dtype=np.int32)
        return float(self._reader.score(Stream(flat, lengths + 2, lengths)).sum())


@pytest.mark.parametrize("name", ["bpe", "unigram", "two tokens of one spelling"])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_pass_of_an_ngram_model_over_the_lattice(name: str, order: int) -> None:
    backend = MAKERS[name]()
    reader, _ = ngrams_of(backend, ["a aé", "é a", "aé"], order)
    model = NgramOfTokens(backend, reader)
    for text in ("aé", "é a"):
        truth = log_sum(model.log_prob_of(row) for row in decoded(name, text))
        assert exact(model, document_of(model, text), FEW).log_p == pytest.approx(truth, abs=1e-12)


def z(values: list[float], expected: float) -> float:
    array = np.asarray(values)
    return float((array.mean() - expected) / (array.std(ddof=1) / math.sqrt(len(array))))


@pytest.mark.long
@pytest.mark.parametrize("name", ["wr", "wr1", "wor", "wor1", "block", "dpf", "guided"])
@pytest.mark.parametrize("order", [2, None])
def test_estimates_are_unbiased(name: str, order: int | None) -> None:
    backend = MAKERS["bpe"]()
    model = ByteModel(backend, order=order, seed=3)
    inventory = model.pieces.inventory
    document = document_of(model, "aé a", LatticeBuilder(inventory, uniform_scores(inventory)))
    truth = log_sum(map(model.log_prob_of, segmentations(model, document)))
    runs = [ESTIMATORS[name].run(model, document, replace(FEW, seed=seed)) for seed in range(600)]
    assert {run.bound for run in runs} == {"unbiased"}
    assert abs(z([math.exp(run.log_p - truth) for run in runs], 1.0)) < 4.0
    assert all(run.log_lower <= truth + 1e-12 for run in runs)


@pytest.mark.parametrize("name", ["bpe", "unigram"])
def test_words_have_the_sums_of_their_segmentations_in_bytes(name: str) -> None:
    backend = MAKERS[name]()
    model = ByteModel(backend, order=2, seed=2)
    document = document_of(model, "a é")
    found = word_log_probs(model, document, EstimatorSettings(candidates=200, particles=500))
    opening = [n for n in model.pieces.inventory.ids.tolist() if backend.decode([n]).startswith(" ")]
    assert byte_token(0x20) in map(backend.id_to_token, opening)

    def sums(text: str) -> float:
        """Return the probability of a text of whole words."""
        return log_sum(
            model.log_prob_of(row) - model.expects(row)[END] + log_sum(model.expects(row)[n] for n in (*opening, END))
            for row in decoded(name, text)
        )

    assert found.exact and found.words == ("a", "é")
    assert found.log_p.tolist() == pytest.approx([sums("a"), sums("a é") - sums("a")], abs=1e-12)


@pytest.mark.parametrize("text", ["aé éa", "ç aç", "aaéç"])
def test_the_segmentation_of_a_unigram_tokeniser_is_the_best_path(text: str) -> None:
    """A letter in bytes scores like an unknown letter, so byte tokens do not replace pieces."""
    for pieces in (("▁", "a", "é", "▁a", "aé", "é▁"), ("▁", "a", "▁a", "aé")):
        backend = unigram(ALL, pieces)
        read = read_pieces(backend)
        scores = read.inventory.scores
        assert scores is not None
        builder = LatticeBuilder(read.inventory)
        lattice = builder.build(read.read(text).spelling)
        assert read.inventory.ids[lattice.piece[best_path(lattice)]].tolist() == backend.encode(text).ids
        found = measure_ambiguity(builder, [read.read(text)])
        assert (found.below_best, found.tied) == (0, 0)
        assert found.entropy == pytest.approx(found.derivative_entropy, abs=1e-12)


def test_scores_of_pieces_are_fitted_without_byte_tokens() -> None:
    read, plain = read_pieces(bpe(ALL)), read_pieces(bpe(b""))
    words = {"▁a": 5, "aé": 3, "é▁": 2, "▁aé": 4}
    spelled = {read.read(word.replace("▁", " ")).spelling: n for word, n in words.items()}
    fitted, without = fit_scores(read.inventory, spelled, **LEAST), fit_scores(plain.inventory, words, **LEAST)
    is_byte = read.inventory.byte_tokens
    assert is_byte is not None and plain.inventory.byte_tokens is None
    assert fitted[~is_byte] == pytest.approx(without, abs=1e-9)
    names = dict(zip(read.inventory.names, fitted.tolist(), strict=True))
    assert names["<0x20>"] == names["<0x61>"] == names["<0xC3>"] == without.min() - 10.0
    assert names["<0xA9>"] == 0.0
    only = fit_scores(read.inventory, {read.read("ç").spelling: 1, **spelled}, **LEAST)
    assert only[~is_byte] == pytest.approx(without, abs=1e-9)  # other words are read as before


def test_tables_show_characters() -> None:
    model = ByteModel(bpe(ALL, ("▁", "a", "é", "▁a", "aé")), order=2)
    builder, _ = builder_for(model.pieces, ["aé é ç"], "uniform")
    read = documents(model, ["aé é ç"], builder)
    words = measure_ambiguity(builder, [document.text for document in read.documents]).words(3)
    assert {word.word for word in words} == {"aé", "▁é", "▁ç"}
    best = {word.word: word.best for word in words}
    assert best["▁ç"] == ("▁", "<0xC3>", "<0xA7>")
    shares = local_canonicality(model, read, builder)
    others = [cut for cut, _ in shares[0].more["instead"]]
    assert others and {token for cut in others for token in cut.split()} <= {*model.pieces.inventory.names}


def test_a_text_that_writes_byte_tokens_out_is_unreadable() -> None:
    backend = unigram(ALL, ("▁", "a", "<", "0", "x", "6", "1", ">"))
    read = read_pieces(backend)
    assert read.read("a<0x").unreadable == ()
    assert read.read("a<0x61>").unreadable == ("<0x61>",)
    assert read.read("a▁").unreadable == ("▁",)


def test_a_decoder_that_reads_the_bytes_of_the_marker_as_a_space_is_refused() -> None:
    backend = bpe(ALL)
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Replace("▁", " "), decoders.Fuse()])
    assert backend.decode([backend.token_to_id(byte_token(byte)) for byte in MARKER]) == " "
    with pytest.raises(InputError, match="decoder reads the bytes of '▁' as a space"):
        read_pieces(backend)
    backend = bpe(SMALL)  # without these bytes
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Replace("▁", " "), decoders.Fuse()])
    rows = list(sequences(backend, "é a", 4))
    model = ByteModel(backend, order=2)
    assert sorted(segmentations(model, document_of(model, "é a"))) == sorted(rows)


def test_byte_tokens_that_do_not_decode_to_bytes_are_no_pieces() -> None:
    backend = bpe(ALL)
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse()])
    read = read_pieces(backend)
    assert read.inventory.byte_tokens is None
    assert read.inventory.pieces == ("▁", "a", "é", "▁a", "aé", "é▁")
    assert read.read("aç").unreadable == ("ç",)
    backend.decoder = decoder()
    assert read_pieces(backend).read("aç").unreadable == ()


@pytest.mark.parametrize("name", ["bpe", "unigram"])
def test_sums_of_a_network(name: str) -> None:
    """Its tokeniser has two more special tokens, around a text."""
    backend = MAKERS[name]()
    model = llama(backend)
    model.model.double()
    for text in ("é a", " aé"):
        read = documents(model, [text], builder_for(model.pieces, [text], None)[0])
        rows = [np.array(row) for row in decoded(name, text)]
        truth = log_sum(model.log_probs(rows).tolist())
        (document,) = read.documents
        assert exact(model, document, FEW).log_p == pytest.approx(truth, abs=1e-10)
        own = model.tokenizer(text, add_special_tokens=False)["input_ids"]
        assert model.pieces.inventory.ids[document.text.canonical].tolist() == own
        shares = evaluate_documents(model, read, ["exact", "nbest", "beam"], EstimatorSettings(samples=300))
        assert [shares.log_p(run)[0] for run in ("exact", "nbest")] == pytest.approx([truth] * 2, abs=1e-10)


@pytest.mark.long
@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from([bpe, unigram]),
    st.sets(st.sampled_from(sorted(b" a\xc3\xa9\xe2\x82\xac")), max_size=5).map(lambda some: bytes(sorted(some))),
    st.sets(st.sampled_from(["a", "é", "▁", "▁a", "aé", "é▁", "€", "a€"]), min_size=1, max_size=5),
    st.sampled_from(["a", "é", "€", "aé", " é", "é a", "a€", "aa a", "€ ", "éé"]),
)
def test_any_tokeniser_and_any_text(
    make: Callable[..., Tokenizer], singles: bytes, pieces: set[str], text: str
) -> None:
    backend = make(singles, tuple(sorted(pieces)))
    read = read_pieces(backend)
    rows = sorted(sequences(backend, text, len(text.encode())))
    own = backend.encode(text).ids
    found = read.read(text)
    if found.unreadable:
        assert 0 in own and tuple(own) not in rows
        return
    model = ByteModel(backend, order=2)
    document = document_of(model, text)
    assert sorted(segmentations(model, document)) == rows
    assert tuple(own) in rows
    assert exact(model, document, FEW).log_p == pytest.approx(log_sum(map(model.log_prob_of, rows)), abs=1e-12)
