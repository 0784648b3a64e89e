"""Full distributions of models of pieces against the exact truth of their pieces."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

import truesource as ts
from truesource import evaluate
from truesource.evaluation.context.measure import context_use
from truesource.evaluation.core.evaluator import OF_PIECES
from truesource.evaluation.core.exclusion import Exclusion
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.windows import BestWithin, PiecesWithin
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.divergence.contexts import measure_contexts
from truesource.evaluation.divergence.of_words import in_words
from truesource.evaluation.divergence.report import constructions
from truesource.evaluation.dynamics import CurveSettings
from truesource.evaluation.dynamics.compare import learning_dynamics
from truesource.evaluation.dynamics.oracle_monitor import OracleMonitor
from truesource.evaluation.explain.where import places_of
from truesource.evaluation.pplu.compare import compare_pplu, oracle_unigram
from truesource.generator.language_model import EVERY_POSITION
from truesource.generator.process_sampler import sampler_of
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.models import load_model
from truesource.lmtrain.pieces.segmentation import cut_language, cut_texts
from truesource.lmtrain.pieces.words import OffsetAligner, Pieces
from truesource.lmtrain.tokenizer import with_specials
from truesource.lmtrain.training import train

LENGTHS = LengthRange(2, 6)
LAW = PCFG.from_text(
    "S -> W S 0.6 | W 0.4\nW -> cat 0.3 | cats 0.2 | catsup 0.1 | the 0.2 | theatre 0.1 | at 0.05 | zebra 0.05"
)


@pytest.fixture(scope="module")
def sentences() -> list[list[str]]:
    sampler = sampler_of(LAW, LENGTHS)
    return [list(sentence) for sentence in sampler.sentences(sampler.draw(60, random_state(3)))]


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def model(request: Any, sentences: list[list[str]], tmp_path_factory: pytest.TempPathFactory) -> Any:
    shape = model_settings("gpt2", layers=1, dim=16, heads=2, tokenizer=request.param, vocab_size=24, max_positions=64)
    folder = tmp_path_factory.mktemp(request.param) / "model"
    known = [[word for word in sentence if word != "zebra"] for sentence in sentences]  # z is an unknown character
    train([sentence for sentence in known if sentence], shape, {"max_steps": 30}, folder)
    return load_model(folder)


@pytest.mark.long
def test_scores_of_pieces_add_up_to_those_of_words(model: Any, sentences: list[list[str]]) -> None:
    possible = [sentence for sentence in sentences if "zebra" not in sentence]
    words = model.score(possible, EVERY_POSITION)
    pieces = model.as_tokens().score(model.cut(possible), EVERY_POSITION)
    sums = [np.bincount(scores.sentence, scores.log_prob) for scores in (words, pieces)]
    np.testing.assert_allclose(sums[1], sums[0], rtol=1e-5)


@pytest.mark.long
def test_ngrams_of_pieces_have_distributions(sentences: list[list[str]], tmp_path: Path) -> None:
    """Log ratios of pieces add up to the log ratio of sentences, and distributions have the scores of pieces."""
    possible = [sentence for sentence in sentences if "zebra" not in sentence]
    model: Any = train(possible, model_settings("ngram", tokenizer="bpe", vocab_size=24, order=3), None, tmp_path / "n")
    law = PCFG.from_text("S -> W S 0.6 | W 0.4\nW -> cat 0.3 | cats 0.2 | catsup 0.1 | the 0.2 | theatre 0.1 | at 0.1")
    result = evaluate("divergence", model, possible, law, lengths=LENGTHS, sentences=1000)
    contexts = sum(len(cut) + 1 for cut in model.cut(possible))
    ratio = law.exact.string_log_probs(possible, LENGTHS).sum() - model.score(possible, EVERY_POSITION).log_prob.sum()
    assert result["kl_paired"].value * contexts == pytest.approx(ratio, rel=1e-9)
    tokens = model.as_tokens()
    (longest, *_) = sorted(model.cut(possible), key=len, reverse=True)
    scores = tokens.score([longest]).log_prob
    places = [*(tokens.vocabulary.index(piece) for piece in longest), len(tokens.vocabulary) + 1]
    for block, place, score in zip(tokens.distributions([longest]), places, scores, strict=True):
        assert block.log_prob[0, place] == pytest.approx(score, rel=1e-12)
        assert np.exp(block.log_prob).sum() == pytest.approx(1.0)


@pytest.mark.long
def test_distributions_have_the_scores_of_pieces(model: Any, sentences: list[list[str]]) -> None:
    tokens = model.as_tokens()
    (longest, *_) = sorted(model.cut(sentences), key=len, reverse=True)
    columns = [*tokens.vocabulary, "<unk>"]
    scores = tokens.score([longest], EVERY_POSITION).log_prob
    for block, piece, score in zip(tokens.distributions([longest]), [*longest, None], scores, strict=True):
        column = len(columns) if piece is None else columns.index(piece)
        assert block.log_prob.shape == (1, len(columns) + 1)
        assert block.log_prob[0, column] == pytest.approx(score, abs=1e-5)
        assert np.exp(block.log_prob[0]).sum() < 1.0 + 1e-12


@pytest.mark.long
def test_the_divergence_of_pieces_is_the_one_of_sentences(model: Any, sentences: list[list[str]]) -> None:
    """The sampled log ratios of the pieces of a sentence add up to the log ratio of the sentence."""
    possible = [sentence for sentence in sentences if "zebra" not in sentence]
    result = evaluate("divergence", model, possible, LAW, lengths=LENGTHS, sentences=1000)
    contexts = sum(len(cut) + 1 for cut in model.cut(possible))
    ratio = LAW.exact.string_log_probs(possible, LENGTHS).sum() - model.score(possible, EVERY_POSITION).log_prob.sum()
    assert result["kl_paired"].value * contexts == pytest.approx(ratio, rel=1e-5)
    assert OF_PIECES.format(model.name) in result.notes
    assert 0.0 < result["kl"].value < 10.0


@pytest.mark.long
def test_the_exact_divergence_is_the_expected_log_ratio(model: Any) -> None:
    """The KL of pieces, over all sentences of the language by their probability, is the mean of their log ratios."""
    law, lengths = PCFG.from_text("S -> W S 0.5 | W 0.5\nW -> cat 0.5 | cats 0.3 | the 0.2"), LengthRange(1, 2)
    words = ["cat", "cats", "the"]
    every = [[one] for one in words] + [[one, two] for one in words for two in words]
    p = np.exp(law.exact.string_log_probs(every, lengths))
    assert p.sum() == pytest.approx(1.0)
    tokens, setting = Setting(law, every, lengths=lengths).with_distributions(model)
    ratios = np.log(p) - np.bincount(*_by_sentence(model, every))
    kl = np.array(
        [
            compare_distributions(tokens, _only(setting, number)).scores["kl"].value * (len(cut) + 1)
            for number, cut in enumerate(setting.sentences)
        ]
    )
    assert p @ kl == pytest.approx(p @ ratios, rel=1e-5)


@pytest.mark.long
def test_the_divergence_in_words_is_the_one_of_their_pieces(model: Any, sentences: list[list[str]]) -> None:
    """Divergences of words, in total and in tables, add up to the divergence of pieces."""
    setting = Setting(LAW, sentences, lengths=LENGTHS)
    in_words = compare_distributions(model, setting, by=("position", "length", "phrase", "ambiguity", "distance"))
    tokens, cut = setting.with_distributions(model)
    in_pieces = compare_distributions(tokens, cut, by=("phrase",))
    number = sum(len(sentence) + 1 for sentence in sentences)
    assert in_words.contexts == number
    assert in_words.scores["kl"].value * number == pytest.approx(in_pieces.scores["kl"].value * in_pieces.contexts)
    assert in_pieces.scores["kl_per_word"].value == pytest.approx(in_words.scores["kl"].value, rel=1e-12)
    assert in_pieces.scores["kl_per_word"].low == pytest.approx(in_words.scores["kl"].low)
    assert "js" not in in_words.scores
    for by in ("position", "length", "phrase", "ambiguity", "distance"):
        rows = in_words.tables[by]
        total = sum(row.tokens * row.scores["kl"].value for row in rows)
        assert total / number == pytest.approx(in_words.scores["kl"].value)
    assert {row.group for row in in_words.tables["length"]} == {str(len(sentence)) for sentence in sentences}
    phrases = [[(row.group, row.scores["kl"].value) for row in of.tables["phrase"]] for of in (in_pieces, in_words)]
    assert phrases[0] == phrases[1]
    with pytest.raises(InputError, match="by probability divides the probabilities of whole words") as error:
        compare_distributions(model, setting, by=("probability",))
    assert error.value.code == "missing-ability"


@pytest.mark.long
def test_measures_of_words_are_those_of_a_loop_over_their_pieces(model: Any, sentences: list[list[str]]) -> None:
    tokens, cut = Setting(LAW, sentences, lengths=LENGTHS).with_distributions(model)
    pieces = measure_contexts(tokens, cut.full_oracle(tokens), cut.sentences)
    words = in_words(pieces, cut.known, cut.sentences)  # type: ignore[arg-type]
    at = word = 0
    for sentence in sentences:
        for position, text in enumerate([*sentence, None]):
            size = 1 if text is None else len(model.cut([["the", text] if position else [text]])[0])
            size -= len(model.cut([["the"]])[0]) if text is not None and position else 0
            right, wrong = 1.0, {"special_mass": 0.0, "impossible_mass": 0.0}
            for piece in range(at, at + size):
                for name in wrong:
                    wrong[name] += right * pieces.column(name)[piece]
                right *= 1.0 - pieces.column("special_mass")[piece] - pieces.column("impossible_mass")[piece]
            for name, mass in wrong.items():
                assert words.column(name)[word] == pytest.approx(mass)
            assert words.column("kl")[word] == pytest.approx(pieces.column("kl")[at : at + size].sum())
            assert words.position[word] == position
            at, word = at + size, word + 1
    assert at == len(pieces.values)
    assert word == len(words.values)


@pytest.mark.long
def test_learning_curves_have_the_divergence_in_words(model: Any, sentences: list[list[str]]) -> None:
    setting = Setting(LAW, sentences, lengths=LENGTHS)
    curves = learning_dynamics([(1, model), (2, model)], setting, name="m", settings=CurveSettings(contexts=150))
    _, cut = setting.with_distributions(model)
    some = 0
    while sum(len(pieces) + 1 for pieces in cut.sentences[: some + 1]) <= 150:
        some += 1
    whole = compare_distributions(model, setting.first(some), by=("length",))
    for at in (0, 1):
        assert curves.curves["all"].kl[at]["all tokens"].value == pytest.approx(whole.scores["kl"].value)
    lengths = {row.group: row.scores["kl"].value for row in whole.tables["length"]}
    assert {name: score.value for name, score in curves.curves["length"].kl[0].items()} == pytest.approx(lengths)
    assert curves.curves["class"].kl[0] == {}
    assert curves.curves["all"].mean[0, 0] < 0.0


def test_the_largest_part_of_the_divergence_is_per_word_for_pieces() -> None:
    rows = [{"by": "phrase", "group": "NP", "name": "kl", "tokens": 3.0, "value": 0.5}]
    overall = {"name": "kl", "value": 0.5, "signature": "kl|pieces:abc|unit:nats/token"}
    assert constructions({"model": "m", "records": [*rows, overall]}) == (
        "The largest parts of the divergence of m are words directly below NP (100% of it, 0.500 nats per word)."
    )
    overall["signature"] = "kl|unit:nats/token"
    assert constructions({"model": "m", "records": [*rows, overall]}).endswith("0.500 nats per token).")


@pytest.mark.long
def test_predictors_of_k_words_predict_pieces(model: Any, sentences: list[list[str]]) -> None:
    """The pieces of a word have together its probability given k words; distributions sum to 1."""
    language, cut = model.tokenised(LAW), model.cut(sentences)
    for seen in (0, 1, 2):
        within = BestWithin(language.truth, seen, lengths=LENGTHS)
        predictor = PiecesWithin(language, within)
        expected = np.concatenate(within.token_log_probs(sentences)).sum()
        got = 0.0
        for batch in predictor.batches(cut):
            for block in predictor.blocks(batch):
                np.testing.assert_allclose(block.probability.sum(axis=1), 1.0, rtol=1e-12)
                weights = [len(members) for members in block.members]
                got += float(np.log(block.probability[np.arange(len(weights)), block.observed]) @ weights)
        assert got == pytest.approx(expected, rel=1e-12)


@pytest.mark.long
def test_the_use_of_context_is_in_words(model: Any, sentences: list[list[str]]) -> None:
    setting = Setting(LAW, sentences, lengths=LENGTHS)
    use = context_use(model, setting, words=2)
    number = sum(len(sentence) + 1 for sentence in sentences)
    assert use.contexts == number
    for seen in (0, 1, 2):
        loss = -np.concatenate(BestWithin(LAW, seen, lengths=LENGTHS).token_log_probs(sentences)).sum() / number
        assert use.lines[str(seen)]["loss"].value == pytest.approx(loss, rel=1e-12)
        assert use.lines[str(seen)]["distance"].value > 0.0
    whole = compare_distributions(model, setting).scores
    assert use.lines["all"]["distance"].value == pytest.approx(whole["kl"].value, rel=1e-12)
    assert use.scores["loss"].value - use.scores["loss_truth"].value == pytest.approx(whole["kl_paired"].value)
    result = evaluate("context", model, sentences, LAW, lengths=LENGTHS, lines=3)
    assert result["effective_context"].value == use.scores["effective_context"].value


@pytest.mark.long
def test_a_predictor_that_sees_all_words_is_the_truth(model: Any, sentences: list[list[str]]) -> None:
    lines = context_use(model, Setting(LAW, sentences[:10], lengths=LENGTHS), words=LENGTHS.high).lines
    seen_all = lines[str(LENGTHS.high)]
    assert seen_all["distance"].value == pytest.approx(lines["all"]["distance"].value, rel=1e-10)
    assert seen_all["above_truth"].value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.long
def test_smaller_vocabularies_are_of_pieces(model: Any, sentences: list[list[str]]) -> None:
    result = evaluate("pplu", model, sentences, LAW, lengths=LENGTHS, reduce=True)
    rows = [each for each in result.scores if each.keys.get("table") == "reduction"]
    assert {each.keys["of"] for each in rows} == {"pieces"}
    tokens, cut = Setting(LAW, sentences, lengths=LENGTHS).with_distributions(model)
    whole = compare_pplu(tokens, cut)
    for side, reference in {"model": "ppl", "truth": "bound"}.items():
        largest = max(each.keys["words"] for each in rows if each.keys["side"] == side)
        assert largest == len(
            set(tokens.vocabulary).intersection(cut.known.vocabulary if side == "truth" else tokens.vocabulary)
        )
        (ppl,) = [
            each.value
            for each in rows
            if (each.name, each.keys["side"], each.keys["protocol"], each.keys["words"])
            == ("ppl", side, "merge", largest)
        ]
        assert ppl == pytest.approx(whole.scores[reference].value, rel=1e-6)
    assert "Only the most frequent pieces" in str(result)


@pytest.mark.long
def test_excluded_sentences_are_cut_too(model: Any, sentences: list[list[str]]) -> None:
    """The truth of pieces excludes what the truth of words excludes: sentences have the same probability."""
    excluded = Exclusion.from_sentences(sentences[:20], LAW, LENGTHS)
    fresh = [sentence for sentence in sentences[20:] if tuple(sentence) not in excluded.sentences]
    setting = Setting(LAW, fresh, lengths=LENGTHS, excluded=excluded)
    tokens, cut = setting.with_distributions(model)
    in_words, in_pieces = setting.truth(model), cut.truth(tokens)
    sums = [np.bincount(each.sentence, each.log_prob) for each in (in_words, in_pieces)]
    np.testing.assert_allclose(sums[1], sums[0], rtol=1e-9)
    free = np.bincount(*_scores_of(LAW, fresh))
    np.testing.assert_allclose(sums[0] - free, -np.log(excluded.kept), rtol=1e-9)
    unigram = oracle_unigram(cut.oracle(tokens), cut.frame_of("causal"))
    assert np.exp(list(unigram.log_prob.values())).sum() == pytest.approx(1.0)


def _scores_of(law: PCFG, sentences: list[list[str]]) -> tuple[Any, Any]:
    scores = Oracle(law, lengths=LENGTHS).score(sentences)
    return scores.sentence, scores.log_prob


@pytest.mark.long
def test_pieces_without_an_exact_truth_are_compared_by_their_scores(model: Any, sentences: list[list[str]]) -> None:
    """If a tokeniser cannot cut the language, comparisons have no exact divergence, and the evaluator says why."""

    def refuse(_: object) -> None:
        raise NothingToMeasureError("after the word 'a', the piece 'b' could continue it", "no-boundary")

    uncut = copy(model)
    uncut.tokenised = refuse
    setting = Setting(LAW, sentences, lengths=LENGTHS)
    assert setting.distributed(uncut) is None
    assert set(OracleMonitor(setting)(uncut)) == {"relative_ppl"}
    assert places_of(uncut, setting) == []
    curves = learning_dynamics([(1, uncut)], setting, name="m", settings=CurveSettings(contexts=150))
    assert curves.contexts == 0
    compared = ts.compare({"one": uncut, "two": uncut}, sentences, LAW, lengths=LENGTHS, exact_kl=10)
    assert not [each for each in compared.scores if each.name == "exact_kl"]
    with pytest.raises(NothingToMeasureError, match="could continue it"):
        evaluate("divergence", uncut, sentences, LAW, lengths=LENGTHS)


@pytest.mark.long
def test_a_comparison_has_the_exact_divergence_per_word(model: Any, sentences: list[list[str]]) -> None:
    possible = [sentence for sentence in sentences if "zebra" not in sentence]
    words = ts.train(possible, "ngram")
    compared = ts.compare({"pieces": model, "words": words}, possible, LAW, lengths=LENGTHS, exact_kl=40)
    exact = {each.keys["model"]: each.value for each in compared.scores if each.name == "exact_kl"}
    assert set(exact) == {"pieces", "words"}
    setting = Setting(LAW, possible[:40], lengths=LENGTHS)
    assert exact["pieces"] == pytest.approx(compare_distributions(model, setting).scores["kl"].value)


def _by_sentence(model: Any, sentences: list[list[str]]) -> tuple[Any, Any]:
    scores = model.score(sentences, EVERY_POSITION)
    return scores.sentence, scores.log_prob


def _only(setting: Setting, number: int) -> Setting:
    return replace(setting, sentences=setting.sentences[number : number + 1])


@pytest.mark.long
def test_the_truth_as_a_model_of_pieces_diverges_nowhere(model: Any, sentences: list[list[str]]) -> None:
    language = model.tokenised(LAW)
    cut = model.cut(sentences)
    truth = Oracle(language, lengths=LENGTHS)
    compared = compare_distributions(truth, Setting(language, cut, lengths=LENGTHS))
    assert compared.scores["kl"].value == pytest.approx(0.0, abs=1e-12)
    assert len(compared.impossible) == 0


@pytest.mark.long
def test_evaluators_that_need_rules_say_that_pieces_have_none(model: Any, sentences: list[list[str]]) -> None:
    with pytest.raises(NothingToMeasureError, match="divergence by class is of whole words"):
        evaluate("divergence", model, sentences, LAW, lengths=LENGTHS, by=("class",))
    with pytest.raises(InputError, match=r"control needs trees, .* a language of pieces does not have: use a model of"):
        evaluate("control", model, sentences, LAW, lengths=LENGTHS)


@pytest.mark.parametrize("kind", ["byte-level", "wordpiece"])
def test_tokenisers_of_others_have_a_truth(kind: str, sentences: list[list[str]]) -> None:
    """Byte-level BPE cuts the first word of a text otherwise; WordPiece marks the pieces within words."""
    law = PCFG.from_text("S -> W S 0.6 | W 0.4\nW -> cat 0.3 | cats 0.2 | été 0.2 | the 0.2 | theatre 0.1")
    backend = Tokenizer(models.BPE() if kind == "byte-level" else models.WordPiece(unk_token="[UNK]"))
    if kind == "byte-level":
        backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        trainer: Any = trainers.BpeTrainer(vocab_size=280, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    else:
        backend.pre_tokenizer, backend.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(vocab_size=30, special_tokens=["[UNK]"])
    backend.train_from_iterator(["the cats cat cats theatre cat the été"] * 5, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]" if kind == "wordpiece" else None)
    aligner = OffsetAligner(tokenizer, "causal")
    names = tuple(tokenizer.convert_ids_to_tokens(range(len(tokenizer))))
    truth = cut_language(law, aligner, names)
    text = ["cats", "the", "été", "cat"]
    (cut,) = cut_texts(aligner, [text], names)
    assert cut == backend.encode(" ".join(text), add_special_tokens=False).tokens == truth.pieces_of(text)
    assert truth.words_of(cut) == text
    assert truth.exact.string_log_probs([cut])[0] == pytest.approx(law.log_prob(text), rel=1e-13)
    rows = truth.next_words([cut]).probability[0]
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-12)


def test_a_tokeniser_that_joins_words_is_refused() -> None:
    backend = Tokenizer(models.BPE({"a": 0, "b": 1, " ": 2, "b ": 3, "<unk>": 4}, [("b", " ")], unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Split("\n", "isolated")
    backend.decoder = decoders.Fuse()
    aligner = OffsetAligner(with_specials(backend, "causal"), "causal")
    with pytest.raises(InputError, match="joins the word"):
        cut_language(PCFG.from_text("S -> a 0.5 | b S 0.5"), aligner, ["a", "b", " ", "b ", "<unk>"])


class Contextual:
    """A tokeniser that cuts ``at`` in two after ``cat``."""

    def align(self, sentences: Any) -> Pieces:
        """Return the pieces of each word."""
        ids, counts = [], []
        for sentence in sentences:
            for at, word in enumerate(sentence):
                cut = [2, 3] if word == "at" and at and sentence[at - 1] == "cat" else [("cat", "at").index(word)]
                ids += cut
                counts.append(len(cut))
        sizes = np.array([len(sentence) for sentence in sentences])
        return Pieces(np.array(ids), np.array(counts), sizes, np.zeros(len(counts), dtype=bool))


def test_cuts_that_depend_on_neighbours_are_refused_with_an_example() -> None:
    law, tokeniser = PCFG.from_text("S -> cat 0.5 | at 0.3 | cat S 0.2"), Contextual()
    with pytest.raises(InputError, match=r"cuts the word 'at' into '▁at', but into '▁a t' in 'cat at'") as error:
        cut_language(law, tokeniser, ["▁cat", "▁at", "▁a", "t"])  # type: ignore[arg-type]
    assert error.value.code == "depends-on-neighbours"
