"""Exact distributions of pieces, against all sentences of small languages written out piece by piece."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from random_grammars import length_ranges, small_pcfgs
from reference_inference import all_strings, rules_of

from truesource.generator.process_sampler import sampler_of
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.pieces.segmentation import Segmentation, byte_cut
from truesource.grammar.pieces.truth import TokenisedTruth, by_bytes, by_characters, tokenised
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import process, word_counts

#: words that begin others, a word of one letter, letters of two and three bytes
NESTED = PCFG.from_text("S -> S S 0.3 | a 0.2 | ab 0.2 | abc 0.1 | b 0.1 | é 0.06 | €é 0.04")
Cut = tuple[str, ...]
tails = st.lists(st.sampled_from(["p", "q"]), max_size=2).map(tuple)
later_cuts = st.tuples(st.sampled_from(["▁x", "▁y"])) | st.tuples(st.sampled_from(["▁x", "▁"]), st.just("p"))
first_cuts = st.tuples(st.sampled_from(["x", "y", "p"]))
cuts = st.tuples(st.tuples(later_cuts, tails), st.tuples(first_cuts, tails)).map(
    lambda pair: ((*pair[0][0], *pair[0][1]), (*pair[1][0], *pair[1][1]))
)


def written_out(truth: PCFG, of: dict[str, tuple[Cut, Cut]], lengths: LengthRange) -> Counter[Cut]:
    """The probability of every sentence of pieces, given the range of words."""
    strings = all_strings(rules_of(truth), lengths.high)[truth.symbols[truth.start]]
    found: Counter[Cut] = Counter()
    for m in range(max(lengths.low, 1), lengths.high + 1):
        for words, p in strings[m].items():
            first, *others = words
            found[(*of[first][1], *(piece for word in others for piece in of[word][0]))] += p
    total = sum(found.values())
    return Counter({pieces: p / total for pieces, p in found.items()})


def check(truth: TokenisedTruth, sentences: Counter[Cut], lengths: LengthRange | None, texts: list[Cut]) -> None:
    """Every distribution and every log probability is that of the language written out."""
    beginnings: Counter[Cut] = Counter()
    for pieces, p in sentences.items():
        for at in range(len(pieces) + 1):
            beginnings[pieces[:at]] += p
    table = truth.next_words([list(text) for text in texts], lengths)
    logs = truth.exact.causal_log_probs([list(text) for text in texts], lengths)
    assert table.words == truth.vocabulary
    for row, text in enumerate(texts):
        for at in range(len(text) + 1):
            before = beginnings[text[:at]]
            if not before:
                assert not table.possible[row, at]
                assert not table.probability[row, at].any()
                assert np.isneginf(logs[row][at])
                continue
            expected = [beginnings[(*text[:at], piece)] / before for piece in truth.vocabulary]
            expected.append(sentences[text[:at]] / before)
            np.testing.assert_allclose(table.probability[row, at], expected, rtol=1e-10, atol=1e-14)
            follows = beginnings[text[: at + 1]] if at < len(text) else sentences[text]
            assert np.exp(logs[row][at]) == pytest.approx(follows / before, rel=1e-10)
        whole = truth.exact.string_log_probs([list(text)], lengths)[0]
        assert np.exp(whole) == pytest.approx(sentences[text], rel=1e-10)


def check_masked(
    truth: TokenisedTruth, sentences: Counter[Cut], lengths: LengthRange, texts: list[Cut]
) -> tuple[int, float]:
    """Every distribution of a masked piece is that of the language written out; return their number, and the sum."""
    logs = truth.exact.masked_log_probs([list(text) for text in texts], lengths)
    blocks = {
        (text, block.position): block.probability[row]
        for batch in truth.exact.causal_batches([list(text) for text in texts])
        for block in truth.exact.masked_blocks(batch, lengths)
        for row, members in enumerate(block.members)
        for text in (texts[member] for member in members)
    }
    for row, text in enumerate(texts):
        for at in range(len(text)):
            joint = np.array([sentences[(*text[:at], piece, *text[at + 1 :])] for piece in truth.vocabulary])
            expected = joint / joint.sum() if joint.any() else joint
            np.testing.assert_allclose(blocks[text, at], expected, rtol=1e-10, atol=1e-14)
            seen = sentences[text] / joint.sum() if joint.any() else 0.0
            assert np.exp(logs[row][at]) == pytest.approx(seen, rel=1e-10, abs=0.0)
    return len(blocks), float(sum(table.sum() for table in blocks.values()))


@pytest.mark.long
@given(
    small_pcfgs(),
    st.lists(cuts, min_size=4, max_size=4),
    length_ranges(4),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_distributions_are_those_of_the_language_written_out(
    pcfg: PCFG, drawn: list[tuple[Cut, Cut]], lengths: LengthRange, alike: bool, choose: object
) -> None:
    assume(pcfg.exact.length_pmf(lengths.high)[max(lengths.low, 1) : lengths.high + 1].sum() > 0.0)
    assume(lengths.low > 0 or pcfg.exact.length_pmf(0)[0] == 0.0)
    of = dict(zip(pcfg.vocabulary, drawn, strict=False))
    if alike:
        of = {word: (later, later) for word, (later, _) in of.items()}
    for side in (0, 1):  # words with the same pieces have them everywhere
        assume(all(one == two for one, two in itertools.combinations(of.values(), 2) if one[side] == two[side]))
    truth = tokenised(pcfg, lambda word: of[word][0], lambda word: of[word][1])
    sentences = written_out(pcfg, of, lengths)
    texts = sorted(sentences)
    choose.shuffle(texts)  # type: ignore[attr-defined]
    some = texts[:6]
    broken = [text[: len(text) // 2] for text in some if len(text) > 1]
    other = [(*text[:-1], truth.vocabulary[0]) for text in some[:2]]
    texts = [*some, *broken, *other, (truth.vocabulary[-1], "no piece")]
    check(truth, sentences, lengths, texts)
    check_masked(truth, sentences, lengths, texts)


@pytest.mark.long
@pytest.mark.parametrize("make", [by_characters, by_bytes])
@pytest.mark.parametrize("lengths", [LengthRange(1, 4), LengthRange(3, 3)])
def test_characters_and_bytes_are_exact(make: object, lengths: LengthRange) -> None:
    truth = make(NESTED)  # type: ignore[operator]
    of = dict(
        zip(truth.segmentation.words, zip(truth.segmentation.cuts, truth.segmentation.first, strict=True), strict=True)
    )
    sentences = written_out(NESTED, of, lengths)
    texts = sorted(sentences, key=lambda text: (len(text), text))
    texts = [*texts[:20], *texts[-20:], ("a", "c"), ("▁",)]
    check(truth, sentences, lengths, texts)
    check_masked(truth, sentences, lengths, texts)


@pytest.mark.long
@pytest.mark.parametrize("lengths", [LengthRange(1, 3), LengthRange(2, 3)])
def test_a_masked_piece_joins_its_neighbours_in_every_way(lengths: LengthRange) -> None:
    """With marks at the beginning of words, or at their end, and words that are pieces of others."""
    law = PCFG.from_text("S -> S S 0.3 | a 0.2 | ab 0.2 | abb 0.1 | b 0.1 | bab 0.1")
    marked = {word: ("▁" + word[0], *word[1:]) for word in law.vocabulary}
    ended = {word: (*word[:-1], word[-1] + "▁") for word in law.vocabulary}
    for of in (marked, ended):
        truth = tokenised(law, of.__getitem__)
        both = {word: (cut, cut) for word, cut in of.items()}
        sentences = written_out(law, both, lengths)
        wrong = [(*text[:1], *reversed(text[1:])) for text in sentences]
        number, total = check_masked(truth, sentences, lengths, [*sentences, *wrong])
        assert 0 < total < number  # some of the wrong texts have a piece that fits, others none
    pieces = ["▁a", "b", "▁b"]
    row = tokenised(law, marked.__getitem__).masked_piece(pieces, 1, LengthRange(1, 3))
    truth = tokenised(law, marked.__getitem__)
    table = dict(zip(truth.vocabulary, row.tolist(), strict=True))
    (two, three) = np.exp(law.exact.string_log_probs([["ab", "b"], ["a", "a", "b"]]))
    assert table["b"] / table["▁a"] == pytest.approx(two / three, rel=1e-12)  # two words, or three
    assert truth.masked_piece(pieces, 1, LengthRange(1, 2))[truth.word_ids["▁a"]] == 0.0


def test_masked_pieces_are_refused_in_one_sentence() -> None:
    truth = by_characters(NESTED)
    with pytest.raises(InputError, match="position 2 is outside a sentence of 2 pieces"):
        truth.masked_piece(["a", "b"], 2)
    with pytest.raises(InputError, match=r"no piece fits position 1 of \['c', 'a'\]"):
        truth.masked_piece(["c", "a"], 1)
    with pytest.raises(InputError, match="this language is a process"):
        by_characters(process("shuffle-dyck", k=2, depth=4)).masked_piece(["a"], 0)
    assert truth.exact.masked_log_probs([[]])[0].shape == (0,)


def test_bytes_of_a_text_are_its_utf8() -> None:
    pieces = by_bytes(NESTED).pieces_of(["€é", "ab"])
    written = b"".join(bytes.fromhex(p[3:5]) if len(p) > 1 else p.encode() for p in pieces)
    assert written.decode() == "€é ab"
    assert byte_cut("é") == ("<0xC3>", "<0xA9>")


def test_pieces_of_a_word_have_its_probability() -> None:
    truth, sentence = by_characters(NESTED), ["abc", "b", "ab", "€é", "a"]
    pieces = truth.pieces_of(sentence)
    (logs,) = truth.exact.causal_log_probs([pieces])
    (words,) = NESTED.exact.causal_log_probs([sentence])
    # the end of a word shows in the piece after it: its share moves from there into the word
    np.testing.assert_allclose(logs.sum(), words.sum(), rtol=1e-13)
    assert truth.words_of(pieces) == sentence
    assert truth.exact.prefix_log_prob(pieces) == pytest.approx(logs[:-1].sum(), rel=1e-13)


def test_whole_words_as_pieces_change_nothing() -> None:
    truth = tokenised(NESTED, lambda word: (word,))
    order = [truth.vocabulary.index(word) for word in NESTED.vocabulary] + [-1]
    sentences = [["a", "b"], ["abc"], ["ab", "é", "a"], ["a", "b", "b", "b"]]
    for lengths in (None, LengthRange(2, 4)):
        some = [text for text in sentences if lengths is None or len(text) in lengths]
        np.testing.assert_allclose(
            truth.next_words(some, lengths).probability[:, :, order],
            NESTED.next_words(some, lengths).probability,
            rtol=1e-14,
        )


def test_words_with_the_same_pieces_are_one_word() -> None:
    truth = tokenised(NESTED, lambda word: ("▁", "<unk>") if len(word) > 1 else (f"▁{word}",))
    assert truth.segmentation.words == ("a", "ab", "b", "é")
    row = truth.next_token(["▁"])
    assert row["<unk>"] == pytest.approx(1.0, rel=1e-14)
    assert truth.next_token([])["▁"] == pytest.approx(
        sum(NESTED.next_token([])[w] for w in ("ab", "abc", "€é")), rel=1e-14
    )


def test_a_process_has_pieces() -> None:
    language = process("shuffle-dyck", k=2, depth=4)
    truth = by_characters(language)
    sampler = sampler_of(language, LengthRange(6, 12))
    (sentence,) = sampler.sentences(sampler.draw(1, random_state(1)))
    pieces = truth.pieces_of(sentence)
    assert truth.exact.causal_log_probs([pieces])[0].sum() == pytest.approx(language.log_prob(sentence), rel=1e-13)
    rows = truth.next_words([pieces]).probability[0]
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-12)
    with pytest.raises(InputError) as error:
        tokenised(language, lambda word: ("x",))
    assert error.value.code == "equal-pieces"


@pytest.mark.parametrize(
    ("cuts", "code"),
    [
        ({"a": ("a",), "ab": ("a", "b"), "b": ("b",)}, "no-boundary"),
        ({"a": (), "ab": ("x",), "b": ("y",)}, "no-pieces"),
        ({"a": ("x",), "ab": ("x",), "b": ("y",)}, "equal-pieces"),
    ],
)
def test_segmentations_that_do_not_read_back_are_refused(cuts: dict[str, Cut], code: str) -> None:
    with pytest.raises(InputError) as error:
        Segmentation(tuple(cuts), tuple(cuts.values()), tuple(cuts.values()))
    assert error.value.code == code


def test_the_mean_number_of_pieces_is_exact() -> None:
    language = PCFG.from_text("S -> a 0.5 | ab S 0.25 | abc a 0.25")
    truth = by_characters(language)
    sentences = written_out(language, {w: (("▁", *w), tuple(w)) for w in ("a", "ab", "abc")}, LengthRange(1, 30))
    mean = sum(p * len(pieces) for pieces, p in sentences.items())
    assert truth.exact.mean_length == pytest.approx(mean, rel=1e-7)  # longer sentences have 1e-8 of the mass
    lengths = LengthRange(2, 4)
    sentences = written_out(language, {w: (("▁", *w), tuple(w)) for w in ("a", "ab", "abc")}, lengths)
    expected = [sum(p * pieces.count(piece) for pieces, p in sentences.items()) for piece in truth.vocabulary]
    np.testing.assert_allclose(word_counts(truth, lengths), expected, rtol=1e-10)


def test_words_with_the_same_pieces_are_cut_although_they_are_one() -> None:
    grammar = PCFG.from_text("S -> S S 0.2 | cat 0.3 | 1945 0.3 | 1946 0.2")
    truth = tokenised(grammar, lambda word: ("▁", "<unk>") if word[0] == "1" else ("▁", *word))
    assert len(truth.truth.vocabulary) == 2
    assert truth.pieces_of(["1946", "cat", "1945"]) == ["▁", "<unk>", "▁", "c", "a", "t", "▁", "<unk>"]
    with pytest.raises(InputError, match="does not have the word '1947'"):
        truth.pieces_of(["cat", "1947"])
    p = truth.exact.string_log_probs([["▁", "<unk>"]])[0]
    assert np.exp(p) == pytest.approx(0.5 / (0.5 + 0.3) * grammar.exact.length_pmf(1)[1], rel=1e-12)
