"""Full distributions of models of pieces against the exact truth of their pieces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from truesource import evaluate
from truesource.evaluation.core.evaluator import OF_PIECES
from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.generator.language_model import EVERY_POSITION
from truesource.generator.process_sampler import sampler_of
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError
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


def test_scores_of_pieces_add_up_to_those_of_words(model: Any, sentences: list[list[str]]) -> None:
    possible = [sentence for sentence in sentences if "zebra" not in sentence]
    words = model.score(possible, EVERY_POSITION)
    pieces = model.as_tokens().score(model.cut(possible), EVERY_POSITION)
    sums = [np.bincount(scores.sentence, scores.log_prob) for scores in (words, pieces)]
    np.testing.assert_allclose(sums[1], sums[0], rtol=1e-5)


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


def test_the_divergence_of_pieces_is_the_one_of_sentences(model: Any, sentences: list[list[str]]) -> None:
    """The sampled log ratios of the pieces of a sentence add up to the log ratio of the sentence."""
    possible = [sentence for sentence in sentences if "zebra" not in sentence]
    result = evaluate("divergence", model, possible, LAW, lengths=LENGTHS, sentences=1000)
    contexts = sum(len(cut) + 1 for cut in model.cut(possible))
    ratio = LAW.exact.string_log_probs(possible, LENGTHS).sum() - model.score(possible, EVERY_POSITION).log_prob.sum()
    assert result["kl_paired"].value * contexts == pytest.approx(ratio, rel=1e-5)
    assert OF_PIECES.format(model.name) in result.notes
    assert 0.0 < result["kl"].value < 10.0


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


def _by_sentence(model: Any, sentences: list[list[str]]) -> tuple[Any, Any]:
    scores = model.score(sentences, EVERY_POSITION)
    return scores.sentence, scores.log_prob


def _only(setting: Setting, number: int) -> Setting:
    return replace(setting, sentences=setting.sentences[number : number + 1])


def test_the_truth_as_a_model_of_pieces_diverges_nowhere(model: Any, sentences: list[list[str]]) -> None:
    language = model.tokenised(LAW)
    cut = model.cut(sentences)
    truth = Oracle(language, lengths=LENGTHS)
    compared = compare_distributions(truth, Setting(language, cut, lengths=LENGTHS))
    assert compared.scores["kl"].value == pytest.approx(0.0, abs=1e-12)
    assert len(compared.impossible) == 0


def test_evaluators_that_need_rules_say_that_pieces_have_none(model: Any, sentences: list[list[str]]) -> None:
    with pytest.raises(InputError, match="which a language of pieces does not have: use a model of whole words"):
        evaluate("context", model, sentences, LAW, lengths=LENGTHS)


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
