"""Masked diffusion: how it is trained, and what its scores are."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from transformers import AutoModelForMaskedLM

from truesource.evaluation.core.comparison import compare_in
from truesource.evaluation.core.setting import Setting
from truesource.generator.abilities import require
from truesource.generator.language_model import ScoringFrame
from truesource.generator.objectives import ranks
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.data import any_order_batch
from truesource.lmtrain.model_registry import model_settings, network_architecture
from truesource.lmtrain.models import load_model
from truesource.lmtrain.tokenizer import build_tokenizer
from truesource.lmtrain.training import train
from truesource.lmtrain.word_models import AnyOrderModel
from truesource.lmtrain.word_vocabulary import WordVocabulary

WORDS = [f"w{i}" for i in range(6)]
TOKENIZER = build_tokenizer([WORDS], objective="any-order")
VOCABULARY = WordVocabulary(TOKENIZER)
SENTENCES = [["w0", "w3", "unknown", "w1"], ["w5"], ["w2", "w2"]]


@pytest.fixture(scope="module")
def model() -> AnyOrderModel:
    """Untrained, with large weights, so that every pattern has a distribution of its own; in float64."""
    torch.manual_seed(0)
    settings = model_settings("diffusion", layers=2, dim=16, heads=2, max_positions=10)
    network = network_architecture("diffusion").build(settings, VOCABULARY)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return AnyOrderModel(network.double(), TOKENIZER, "random")


def test_a_batch_hides_each_number_of_words_and_each_set_of_them_as_often() -> None:
    rows = [np.array([5, 6, 7])] * 30_000
    batch = any_order_batch(rows, np.random.default_rng(1), VOCABULARY)
    hidden = (batch["input_ids"][:, 1:-1] == VOCABULARY.mask).numpy()
    sets, counts = np.unique(hidden @ np.array([1, 2, 4]), return_counts=True)
    assert sets.tolist() == list(range(1, 8))
    of_size = {1: 1 / 9, 2: 1 / 9, 3: 1 / 3}
    expected = [30_000 * of_size[int(each).bit_count()] for each in sets]
    assert chisquare(counts, expected).pvalue > 1e-3
    numbers = np.bincount(hidden.sum(axis=1))[1:]
    assert abs(numbers - 10_000).max() <= 1  # shares of a batch are spread evenly


def test_a_batch_weighs_words_as_the_mean_over_random_orders_does() -> None:
    """With any losses f(place, known set): E[sum of n/m f] is the sum over places of the mean over orders."""
    rng = np.random.default_rng(2)
    table = rng.random((8, 3))  # by known set, and place
    rows = [np.array([5, 6, 7])] * 60_000
    batch = any_order_batch(rows, rng, VOCABULARY)
    hidden = (batch["input_ids"][:, 1:-1] == VOCABULARY.mask).numpy()
    known = (~hidden) @ np.array([1, 2, 4])
    losses = table[np.repeat(known, hidden.sum(axis=1)), np.nonzero(hidden)[1]]
    weights = batch["weights"].numpy()
    assert weights.sum() == pytest.approx(3 * 60_000)  # a sentence of n words weighs n
    per_sentence = np.bincount(np.nonzero(hidden)[0], weights * losses)
    orders = list(itertools.permutations(range(3)))
    wanted = np.mean([sum(table[sum(1 << j for j in o[:k]), o[k]] for k in range(3)) for o in orders])
    assert abs(per_sentence.mean() - wanted) < 4.0 * per_sentence.std() / np.sqrt(len(rows))


def test_scores_are_those_of_words_one_by_one(model: AnyOrderModel) -> None:
    scores = model.score(SENTENCES, ScoringFrame())
    assert len(scores.log_prob) == 7
    for value, s, position in zip(scores.log_prob, scores.sentence, scores.position, strict=True):
        sentence = SENTENCES[s]
        (rank,) = ranks(sentence)
        pattern = [word if rank[i] < rank[position] else None for i, word in enumerate(sentence)]
        column = model.vocabulary.index(sentence[position]) if sentence[position] in model.vocabulary else len(WORDS)
        assert model.denoise([pattern])[0, position, column] == pytest.approx(value, abs=1e-10)


def test_a_denoiser_sees_all_words_that_are_known_and_no_others(model: AnyOrderModel) -> None:
    one = model.denoise([["w0", None, "w1", None], ["w0", None, "w2", None]])
    assert one.shape == (2, 4, len(WORDS) + 1)
    assert np.abs(one[0, 1] - one[1, 1]).max() > 1e-3
    mass = np.exp(one[:, 1]).sum(axis=1)
    assert (mass < 1.0).all()  # the rest is on special tokens
    again = model.denoise([["w0", None, "w1", None]])
    np.testing.assert_allclose(again[0], one[0], rtol=0.0, atol=1e-10)


def test_what_cannot_be_filled_is_refused(model: AnyOrderModel) -> None:
    with pytest.raises(InputError, match="of one length"):
        model.denoise([["w0"], ["w0", None]])
    with pytest.raises(InputError, match="at most 8"):
        model.denoise([["w0"] * 9])
    with pytest.raises(ValueError, match="gaps of whole words"):
        model_settings("diffusion", tokenizer="bpe", vocab_size=100)
    masked = type("Masked", (), {"name": "masked", "vocabulary": ("a",)})()
    with pytest.raises(InputError, match="words at any gaps: masked has no denoise"):
        require(masked, "denoising", "evaluate diffusion")


@pytest.mark.long
def test_a_trained_one_comes_near_the_truth_and_opens_in_transformers(tmp_path: Path) -> None:
    pcfg = PCFG.from_text("S -> A B 0.6 | B A 0.4\nA -> 'a' 0.5 | 'b' 0.5\nB -> 'c' 0.7 | 'd' 0.3")
    from truesource.generator.sampler import Sampler
    from truesource.grammar.support.arrays import random_state

    sampler = Sampler(pcfg)
    sentences = sampler.sentences(sampler.draw(2200, random_state(1)))
    settings = model_settings("diffusion", layers=1, dim=32, heads=2, dropout=0.0, max_positions=6)
    training = TrainConfig(max_steps=300, batch_sentences=64, learning_rate=5e-3, warmup_steps=10, eval_every=300)
    source = {"train": sentences[:2000], "dev": sentences[2000:2100]}
    folder = tmp_path / "model"
    train(source["train"], settings, training, folder, seed=1)
    loaded = load_model(folder, device="cpu")
    assert isinstance(loaded, AnyOrderModel) and loaded.objective == "any-order"
    found = compare_in(loaded, Setting(pcfg, sentences[2000:]))
    assert found.objective == "any-order" and "orders:1" in found.signature
    assert 0.99 < found.measures["relative_ppl"].value < 1.05
    plain = AutoModelForMaskedLM.from_pretrained(folder).eval()
    ids = torch.tensor([[2, 5, 4, 3]])
    with torch.no_grad():
        assert torch.equal(plain(input_ids=ids).logits, loaded.model(input_ids=ids).logits)
