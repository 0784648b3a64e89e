"""Exact soft targets of pieces in a training loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from saved_models import save_piece_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from tokenizers.trainers import BpeTrainer

from truesource.evaluation.core.comparison import compare_in
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.dynamics.oracle_monitor import OracleMonitor
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.models import load_model
from truesource.lmtrain.pieces.segmentation import read_cutter
from truesource.lmtrain.truth import ExactTargets, TruthCallback, endless, kl_to_truth

LAW = PCFG.from_text("S -> W S 0.5 | W 0.5\nW -> cat 0.5 | cats 0.3 | the 0.15 | at 0.05")
LENGTHS = LengthRange(1, 5)
TEXT = [["the", "cats"], ["cat"], ["at", "cat", "the", "cats"]]


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def model(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load_model(save_piece_model(tmp_path_factory.mktemp("m"), TEXT, request.param, 16), device="cpu")


@pytest.mark.long
def test_targets_are_the_exact_distributions_of_pieces(model: Any) -> None:
    targets = ExactTargets(LAW, TEXT, model.tokenizer, lengths=LENGTHS, dtype=torch.float64)
    batch, truth, cut = targets.batch(TEXT), model.tokenised(LAW), model.cut(TEXT)
    exact = truth.next_words(cut, LENGTHS)
    numbers = [model.tokenizer.convert_tokens_to_ids(piece) for piece in truth.vocabulary]
    for row, pieces in enumerate(cut):
        n = len(pieces)
        bos, eos = model.tokenizer.bos_token_id, model.tokenizer.eos_token_id
        ids = [bos, *model.tokenizer.convert_tokens_to_ids(pieces), eos]
        assert batch["input_ids"][row, : n + 2].tolist() == ids
        assert int(batch["attention_mask"][row].sum()) == n + 2
        probs = batch["target_probs"][row].numpy()
        np.testing.assert_array_equal(probs[: n + 1, [*numbers, eos]], exact.probability[row, : n + 1])
        np.testing.assert_allclose(probs[: n + 1].sum(axis=1), 1.0, rtol=1e-12)
        assert not probs[n + 1 :].any()
    assert [len(targets[i]["input_ids"]) for i in range(3)] == [len(pieces) + 2 for pieces in cut]


def test_the_loss_is_the_divergence_that_evaluators_report(model: Any) -> None:
    batch = ExactTargets(LAW, (), model.tokenizer, lengths=LENGTHS, dtype=torch.float64).batch(TEXT)
    with torch.no_grad():
        logits = model.model(input_ids=batch["input_ids"]).logits.double()
    tokens, setting = Setting(LAW, TEXT, lengths=LENGTHS).with_distributions(model)
    reported = compare_distributions(tokens, setting).scores["kl"].value
    assert float(kl_to_truth(logits, batch["target_probs"])) == pytest.approx(reported, rel=1e-6)


@pytest.mark.long
def test_training_on_soft_targets_comes_nearer_to_the_truth(model: Any) -> None:
    callback = TruthCallback(None, LAW, model.tokenizer, steps=1, sentences=64, lengths=LENGTHS)  # type: ignore[arg-type]
    before = callback.measure(model.model)
    targets = ExactTargets(LAW, (), model.tokenizer, lengths=LENGTHS)
    optimiser = torch.optim.Adam(model.model.parameters(), lr=0.02)
    for _, sentences in zip(range(40), endless(LAW, batch=16, seed=1, lengths=LENGTHS), strict=False):
        batch = targets.batch(sentences)
        loss = kl_to_truth(model.model(input_ids=batch["input_ids"]).logits, batch["target_probs"])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    assert callback.measure(model.model) < 0.1 * before


def test_the_monitor_of_a_training_has_the_divergence_per_word(model: Any) -> None:
    setting = Setting(LAW, TEXT, lengths=LENGTHS)
    found = OracleMonitor(setting)(model)
    tokens, pieces = setting.with_distributions(model)
    scores = compare_distributions(tokens, pieces).scores
    for name, reported in {"kl": "kl_per_word", "js": "js", "tv": "tv"}.items():
        assert found[name] == pytest.approx(scores[reported].value, rel=1e-5)
    assert found["relative_ppl"] == pytest.approx(compare_in(model, setting).measures["relative_ppl"].value, rel=1e-6)


def test_a_name_is_no_tokeniser() -> None:
    with pytest.raises(InputError, match="got str; AutoTokenizer"):
        ExactTargets(LAW, TEXT, "characters")  # type: ignore[arg-type]


def test_a_model_cuts_a_language_by_name(model: Any, tmp_path: Path) -> None:
    (tmp_path / "law.txt").write_text("S -> W S 0.5 | W 0.5\nW -> cat 0.4 | cats 0.6\n", "utf-8")
    assert model.tokenised(tmp_path / "law.txt").pieces_of(["cats"]) == model.cut([["cats"]])[0]
    with pytest.raises(InputError, match="models come first"):
        model.tokenised(model)


def test_a_tokeniser_that_drops_letters_of_words_is_refused(tmp_path: Path) -> None:
    """A byte-level tokeniser trained without all bytes drops the letters that it has not seen."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.train_from_iterator(["the cat sees a dog"], BpeTrainer(vocab_size=40))
    backend.save(str(tmp_path / "tokenizer.json"))
    cutter = read_cutter(tmp_path / "tokenizer.json")
    assert cutter.cut([["the", "cat"]])
    for word in ("win", "cow", "towed"):
        with pytest.raises(InputError, match=f"drops a part of the word '{word}' of sentence 2"):
            cutter.cut([["the", "cat"], ["the", word]])
        law = PCFG.from_text(f"S -> the {word} 1.0")
        with pytest.raises(InputError, match=f"drops (a part of )?the word '{word}'(,|$)"):
            cutter.language(law)
