"""Models without a token for the beginning of a text: what comes before it is said, and the end may be left out."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from truesource.evaluation.tokenisation import EstimatorSettings
from truesource.evaluation.tokenisation.documents import documents
from truesource.evaluation.tokenisation.lattice import LatticeBuilder, uniform_scores
from truesource.evaluation.tokenisation.results import evaluate_documents
from truesource.generator.language_model import ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.folders import no_bars
from truesource.lmtrain.models import load_model
from truesource.lmtrain.pieces.models import CausalPieceModel

END = "<|endoftext|>"
TEXT = "the cat"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> CausalPieceModel:
    """As Qwen: byte-level BPE, an end of a text, no beginning."""
    folder = tmp_path_factory.mktemp("m")
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=262, special_tokens=[END], initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator(["the cat sat", "the mat"] * 3, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=END)
    torch.manual_seed(0)
    size = {"n_positions": 30, "n_embd": 16, "n_layer": 1, "n_head": 2, "initializer_range": 0.4}
    with no_bars():
        GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **size)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    assert "bos_token" not in json.loads((folder / "tokenizer_config.json").read_text())
    loaded = load_model(folder, device="cpu")
    assert isinstance(loaded, CausalPieceModel)
    return loaded


def by_hand(model: CausalPieceModel, tokens: list[int], *, end: bool) -> float:
    (eos,) = model.aligner.marks.after or (model.tokenizer.eos_token_id,)
    with torch.no_grad():
        logits = model.model(input_ids=torch.tensor([[eos, *tokens]])).logits[0].double()
    log_p = torch.log_softmax(logits, dim=-1)
    return sum(float(log_p[i, token]) for i, token in enumerate([*tokens, *([eos] if end else [])]))


@pytest.mark.parametrize("end", [True, False])
def test_a_text_after_the_end_of_another(model: CausalPieceModel, end: bool) -> None:
    tokens = model.tokenizer(TEXT, add_special_tokens=False)["input_ids"]
    with pytest.raises(InputError, match="say what comes before a text, commonly its end: --before eos"):
        model.incremental_scorer()
    for before in ("eos", END):
        told = model.around_texts(before=before, end=end)
        assert told.around == (1, int(end))
        assert told.chosen_before == before
        expected = by_hand(model, tokens, end=end)
        assert told.log_probs([np.array(tokens)])[0] == pytest.approx(expected, abs=1e-5)
        scorer = told.incremental_scorer()
        at, total = np.array([scorer.begin()]), 0.0
        for token in tokens:
            total += scorer.log_prob(at, np.array([token])).item()
            at = scorer.extend(at, np.array([token]))
        assert total + scorer.log_end(at).item() == pytest.approx(expected, abs=1e-5)
    assert model.around == (0, 1)  # itself unchanged
    assert model.chosen_before is None


def test_words_are_scored_after_what_was_chosen(model: CausalPieceModel) -> None:
    """Of a sentence of one word: all its pieces, and the end in place of what may follow the word."""
    frame = ScoringFrame()
    with pytest.raises(InputError, match=r"say what comes before a text \(score --before eos\)"):
        model.score([["the"]], frame)
    told = model.around_texts(before="eos")
    tokens = model.tokenizer("the", add_special_tokens=False)["input_ids"]
    found = told.score([["the"]], frame)
    assert found.log_prob.sum() == pytest.approx(by_hand(told, tokens, end=True), abs=1e-5)
    (number,) = told.aligner.marks.before
    assert f"bos={number}" in told.reading and told.reading != model.reading


@pytest.mark.long
def test_what_was_chosen_is_in_the_signature(model: CausalPieceModel) -> None:
    told = model.around_texts(before="eos", end=False)
    builder = LatticeBuilder(told.pieces.inventory, uniform_scores(told.pieces.inventory))
    found = evaluate_documents(told, documents(told, [TEXT], builder), ["nbest"], EstimatorSettings(samples=4))
    signed = found.signed("nbest")
    assert "|before:eos|" in signed
    assert "|eos:out|" in signed


@pytest.mark.parametrize("before", ["bos", "sep", "no such token"])
def test_a_token_that_is_not_there_is_refused(model: CausalPieceModel, before: str) -> None:
    with pytest.raises(InputError, match=f"has no token '{before}' to put before a text"):
        model.around_texts(before=before)
