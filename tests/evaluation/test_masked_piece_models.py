"""Masked models of pieces against the exact truth of their pieces: enumeration, a slow loop, and refusals."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from saved_models import save_piece_model
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from truesource import compare, evaluate
from truesource.evaluation.core.evaluator import OF_MASKED_PIECES
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.divergence.contexts import measure_contexts
from truesource.evaluation.divergence.report import group_table, measures_table
from truesource.evaluation.dynamics.oracle_monitor import OracleMonitor
from truesource.evaluation.show.declared import record_of
from truesource.generator.plan import parse_transform
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.arrays import FloatArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.truth import process
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.models import load_model
from truesource.lmtrain.pieces.models import MaskedPieceModel
from truesource.lmtrain.pieces.words import OffsetAligner
from truesource.lmtrain.subword_vocabulary import SubwordVocabulary
from truesource.lmtrain.subwords import build_subword_tokenizer
from truesource.lmtrain.training import train

LENGTHS = LengthRange(1, 3)
WORDS = ("cat", "cats", "s", "at", "zu")  # z and u are unknown characters
LAW = PCFG.from_text("S -> W S 0.5 | W 0.5\nW -> cat 0.3 | cats 0.2 | s 0.2 | at 0.2 | zu 0.1")
OTHER = PCFG.from_text("S -> W S 0.3 | W 0.7\nW -> cat 0.2 | cats 0.1 | s 0.3 | at 0.3 | zu 0.1")
SENTENCES = [list(words) for n in (1, 2, 3) for words in product(WORDS, repeat=n)]
SEEN = [sentence for sentence in SENTENCES if "zu" not in sentence]

Probabilities = defaultdict[tuple[int, ...], float]  # of rows of tokens


def wordpiece() -> PreTrainedTokenizerFast:
    """A tokeniser as BERT has it, with ``##`` within words."""
    backend = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.decoder = decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=14, special_tokens=specials, show_progress=False)
    backend.train_from_iterator([" ".join(sentence) for sentence in SEEN], trainer)
    backend.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, [("[CLS]", 2), ("[SEP]", 3)])
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=backend, mask_token="[MASK]", **names)


def tokenizer_of(kind: str) -> PreTrainedTokenizerFast:
    if kind == "wordpiece":
        return wordpiece()
    return build_subword_tokenizer(SEEN, kind, 14, objective="masked")  # type: ignore[arg-type]


def rows_of(model: MaskedPieceModel, law: PCFG, lengths: LengthRange) -> Probabilities:
    """The probability of every sentence of the language, as the tokens that the network reads."""
    before, after, *_ = model.aligner.marks
    some = [sentence for sentence in SENTENCES if len(sentence) in lengths]
    rows: Probabilities = defaultdict(float)
    for row, value in zip(model.aligner.align(some).rows(), law.exact.string_log_probs(some, lengths), strict=True):
        rows[(*before, *row.tolist(), *after)] += float(np.exp(value))
    assert sum(rows.values()) == pytest.approx(1.0)
    return rows


def masked_row(rows: Probabilities, row: tuple[int, ...], place: int, size: int) -> FloatArray:
    """P(token at a place | all other tokens of the row), (V,), by looking at every sentence."""
    table = np.zeros(size)
    for other, probability in rows.items():
        if len(other) == len(row) and (*other[:place], *other[place + 1 :]) == (*row[:place], *row[place + 1 :]):
            table[other[place]] += probability
    row_of_mask: FloatArray = table / table.sum()
    return row_of_mask


class EnumeratedNetwork(torch.nn.Module):
    """A network that predicts the masked token of a row from the probabilities of all rows."""

    def __init__(self, mask: int, size: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.mask, self.size = mask, size
        self.rows: Probabilities = defaultdict(float)

    def forward(self, input_ids: torch.Tensor) -> Any:
        logits = torch.zeros((*input_ids.shape, self.size), dtype=torch.float64)
        for number, row in enumerate(map(tuple, input_ids.tolist())):
            (place,) = [at for at, token in enumerate(row) if token == self.mask]
            with np.errstate(divide="ignore"):
                logits[number, place] = torch.from_numpy(np.log(masked_row(self.rows, row, place, self.size)))
        return SimpleNamespace(logits=logits)


def enumerated(kind: str, law: PCFG, lengths: LengthRange) -> MaskedPieceModel:
    """A masked model of pieces that is a language."""
    tokenizer = tokenizer_of(kind)
    network: Any = EnumeratedNetwork(int(tokenizer.mask_token_id), len(tokenizer))
    aligner = OffsetAligner(tokenizer, "masked") if kind == "wordpiece" else SubwordVocabulary(tokenizer)
    model = MaskedPieceModel(network, tokenizer, aligner, "enumerated")
    network.rows = rows_of(model, law, lengths)
    return model


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_the_truth_as_a_model_has_no_divergence_in_any_context(kind: str) -> None:
    """Both sides see the other pieces, their number, and the condition on the number of words."""
    model = enumerated(kind, LAW, LENGTHS)
    tokens, cut = Setting(LAW, SENTENCES, lengths=LENGTHS).with_distributions(model)
    language: Any = cut.known
    numbers = {len(language.words_of(pieces)) for pieces in cut.sentences if len(pieces) == 3}
    assert len(numbers) > 1  # the number of pieces does not tell the number of words
    measured = measure_contexts(tokens, cut.full_oracle(tokens), cut.sentences)
    assert len(measured.values) == sum(map(len, cut.sentences))
    assert np.abs(measured.column("kl")).max() < 1e-10
    assert np.abs(measured.column("reverse_kl")).max() < 1e-10
    assert np.abs(measured.truth - measured.model).max() < 1e-10
    assert measured.column("special_mass").max() < 1e-10
    assert not np.isinf(measured.truth).any()
    shorter = LengthRange(1, 2)
    result = evaluate("divergence", model, [s for s in SENTENCES if len(s) in shorter], LAW, lengths=shorter)
    assert result["kl"].value > 1e-3  # a condition that one side does not know shows


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_a_divergence_is_that_of_all_sentences_written_out(kind: str) -> None:
    model = enumerated(kind, OTHER, LENGTHS)
    p, q = rows_of(model, LAW, LENGTHS), rows_of(model, OTHER, LENGTHS)
    size, before, after = len(model.aligner), *(len(marks) for marks in model.aligner.marks[:2])
    some = SENTENCES[::7]
    values, sampled = [], []
    for pieces in model.aligner.align(some).rows():
        row = (*model.aligner.marks.before, *pieces.tolist(), *model.aligner.marks.after)
        for place in range(before, len(row) - after):
            one, two = masked_row(p, row, place, size), masked_row(q, row, place, size)
            values.append(float((one[one > 0.0] * np.log(one[one > 0.0] / two[one > 0.0])).sum()))
            sampled.append(float(np.log(one[row[place]] / two[row[place]])))
    result = evaluate("divergence", model, some, LAW, lengths=LENGTHS, by=("position", "length", "frequency"))
    assert result["kl"].value == pytest.approx(np.mean(values), abs=1e-10)
    assert result["kl_paired"].value == pytest.approx(np.mean(sampled), abs=1e-10)
    assert result["kl"].value > 0.001
    assert result.detail.entries["contexts"] == len(values)
    assert OF_MASKED_PIECES.format("enumerated") in result.notes


@pytest.fixture(scope="module", params=["bpe", "unigram", "wordpiece"])
def model(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp(request.param) / "model"
    if request.param == "wordpiece":
        tokenizer = wordpiece()
        torch.manual_seed(1)
        shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
        config = BertConfig(vocab_size=len(tokenizer), initializer_range=0.7, **shape)
        BertForMaskedLM(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    else:
        kind = {"tokenizer": request.param, "vocab_size": 14}
        train(SEEN, model_settings("bert", layers=1, dim=16, heads=2, **kind), {"max_steps": 20}, folder)
    return load_model(folder, device="cpu")


def test_a_trained_model_has_the_divergence_of_a_slow_loop(model: Any) -> None:
    """Mask each piece in turn; softmax over all logits; special tokens have no column, so their mass is lost."""
    p, some = rows_of(model, LAW, LENGTHS), SENTENCES[::3]
    before, after, mask, _ = model.aligner.marks
    special = sorted({*model.tokenizer.all_special_ids, *before, *after} - {model.tokenizer.unk_token_id})
    values, lost, observed = [], [], []
    for pieces in model.aligner.align(some).rows():
        row = [*before, *pieces.tolist(), *after]
        for place in range(len(before), len(row) - len(after)):
            truth = masked_row(p, tuple(row), place, len(model.aligner))
            inputs = torch.tensor([[*row[:place], mask, *row[place + 1 :]]])
            with torch.no_grad():
                q = torch.log_softmax(model.model(input_ids=inputs).logits[0, place].double(), dim=0).numpy()
            values.append(float((truth[truth > 0.0] * (np.log(truth[truth > 0.0]) - q[truth > 0.0])).sum()))
            lost.append(float(np.exp(q[special]).sum()))
            observed.append(float(q[row[place]]))
    result = evaluate("divergence", model, some, LAW, lengths=LENGTHS)
    assert result["kl"].value == pytest.approx(np.mean(values), abs=1e-6)
    assert result["special_mass"].value == pytest.approx(np.mean(lost), abs=1e-6)
    assert np.mean(lost) > 1e-4
    tokens = model.as_tokens()
    assert tokens.score(model.cut(some)).log_prob == pytest.approx(observed, abs=1e-5)


def test_distributions_do_not_depend_on_the_sentences_beside(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of several positions, of one, and of a part of the sentences, have the same rows."""
    tokens = model.as_tokens()
    (size,) = {len(pieces) for pieces in model.cut([["cats", "at"]])}
    rows = [pieces for pieces in model.cut(SENTENCES) if len(pieces) == size]
    whole = list(tokens.distributions(rows))
    assert [block.position for block in whole] == [*range(size)]
    for budget in (1, 3 * (size + 2), 10**6):
        monkeypatch.setattr("truesource.lmtrain.pieces.token_model.batch_budget", lambda _, budget=budget: budget)
        for one, other in zip(whole, tokens.distributions(rows), strict=True):
            assert one.position == other.position
            np.testing.assert_allclose(one.log_prob, other.log_prob, atol=1e-5)


def test_numbers_of_words_are_absent_or_refused(model: Any) -> None:
    setting = Setting(LAW, SENTENCES[:20], lengths=LENGTHS)
    result = evaluate("divergence", model, setting)
    assert not {"kl_per_word", "kl_language", "kl_nonwords", "kl_segmentation"} & {s.name for s in result.scores}
    refusals = {"phrase": "masked", "ambiguity": "masked", "distance": "masked", "class": "missing-ability"}
    for by, code in refusals.items():
        with pytest.raises(NothingToMeasureError, match=f"by {by}") as error:
            evaluate("divergence", model, setting, by=(by,))
        assert error.value.code == code
    with pytest.raises(NothingToMeasureError, match="no exact divergence per word: divergences of pieces") as error:
        compare_distributions(model, setting)
    assert error.value.code == "masked"
    with pytest.raises(InputError, match="--sums needs the probability of a text, which the masked model") as refused:
        evaluate("divergence", model, setting, sums=3)
    assert refused.value.code == "masked"
    assert set(OracleMonitor(setting)(model)) == {"relative_ppl"}
    assert setting.distributed(model) is not None
    assert setting.distributed(model, of_words=True) is None


def test_truths_without_masked_pieces_are_refused(model: Any, tmp_path: Path) -> None:
    text = [["(1", "(2", ")1", ")2"]] * 3
    of_brackets = load_model(save_piece_model(tmp_path / "b", text, "bpe", 14, architecture="bert"), device="cpu")
    law = process("shuffle-dyck", k=2, depth=4)
    with pytest.raises(InputError, match="the probability of a word given all others, which the process") as error:
        evaluate("divergence", of_brackets, text, law)
    assert error.value.code == "missing-ability"
    transformed = Setting(LAW, SENTENCES[:9], lengths=LENGTHS, transform=parse_transform("block-shuffle:size=2,seed=1"))
    with pytest.raises(
        NothingToMeasureError, match="a masked piece has exact probabilities only in the order"
    ) as error:
        evaluate("divergence", model, transformed)
    assert error.value.code == "transformed"


def test_sentences_that_the_model_cannot_read_are_refused(model: Any) -> None:
    tokens, pieces = model.as_tokens(), model.cut([["cats", "at"]])
    with pytest.raises(InputError, match="the tokeniser has no piece 'rubbish'"):
        list(tokens.distributions([["rubbish"]]))
    with pytest.raises(InputError, match="need sentences of one length"):
        list(tokens.distributions([*pieces, pieces[0][1:]]))
    tokens.longest = len(pieces[0]) + 1  # one less than its pieces and the tokens around them
    with pytest.raises(InputError, match=f"sentence 1 has {len(pieces[0])} pieces, but the model takes at most"):
        list(tokens.distributions(pieces))


def test_a_tokeniser_without_a_mask_is_refused() -> None:
    model = enumerated("bpe", LAW, LENGTHS)
    model.aligner.marks = model.aligner.marks._replace(mask=None)  # type: ignore[misc]
    with pytest.raises(InputError, match="the tokeniser has no mask token"):
        model.as_tokens()


def test_a_comparison_says_that_the_exact_divergence_is_missing(model: Any, tmp_path: Path) -> None:
    other = load_model(save_piece_model(tmp_path / "other", SEEN, "unigram", 14, architecture="gpt2"), device="cpu")
    result = compare({"masked": model, "causal": other}, SEEN, LAW, lengths=LENGTHS, exact_kl=5)
    exact = {score.keys["seed_of"] for score in result.scores if score.name == "exact_kl"}
    assert exact == {"causal"}
    assert any(note.startswith("no exact KL of masked: it needs") for note in result.notes)


def test_smaller_vocabularies_are_of_masked_pieces(model: Any) -> None:
    result = evaluate("pplu", model, SEEN, LAW, lengths=LENGTHS, reduce=True)
    rows = [s for s in result.scores if s.keys.get("table") == "reduction" and s.keys.get("side") == "model"]
    all_pieces: Any = next(s for s in rows if s.name == "ppl" and s.keys["protocol"] == "skip")
    mean = model.as_tokens().score(model.cut(SEEN)).log_prob.mean()
    assert all_pieces.value == pytest.approx(np.exp(-mean), rel=1e-6)
    assert all_pieces.keys["of"] == "pieces"


def test_tables_are_of_masked_pieces(model: Any) -> None:
    output: Any = evaluate("divergence", model, SENTENCES, LAW, lengths=LENGTHS).detail
    record: Any = record_of(output)
    headings = {by: group_table(by, {"m": record}).columns[:2] for by in ("frequency", "length")}
    assert headings == {
        "frequency": ("frequency of the masked piece", "tokens"),
        "length": ("pieces in the sentence", "tokens"),
    }
    words = {**record, "records": [{**each, "signature": "kl|objective:masked"} for each in record["records"]]}
    note = measures_table({"m": record, "w": words}).note
    assert note.endswith("; tokens of m are masked pieces, which have no divergence per word")
    assert "pieces" not in measures_table({"m": record}).note
