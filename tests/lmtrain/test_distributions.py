"""Full distributions of networks, against their next-token probabilities and scores."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.evaluation.divergence.contexts import cache_truth
from truesource.generator.language_model import DistributionModel, ScoringFrame
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.model_registry import model_settings, network_architecture, network_names
from truesource.lmtrain.tokenizer import build_tokenizer
from truesource.lmtrain.word_models import CausalModel, MaskedModel
from truesource.lmtrain.word_vocabulary import WordVocabulary

ANY_LENGTH = ("gated_cnn", "lstm")
WORDS = [f"w{i}" for i in range(7)]
SENTENCES = [["w0", "w3", "unknown"], ["w6", "w1", "w1"], ["w2", "unknown", "w5"], ["w6", "w1", "w1"]]


def random_model(architecture: str) -> CausalModel | MaskedModel:
    """Untrained, with large weights, so that every position has a distribution of its own."""
    objective = network_architecture(architecture).objective
    tokenizer = build_tokenizer([WORDS], objective=objective)
    sizes = {} if architecture in ANY_LENGTH else {"heads": 2, "max_positions": 10}
    config = model_settings(architecture=architecture, layers=2, dim=16, **sizes)
    torch.manual_seed(0)
    network = network_architecture(architecture).build(config, WordVocabulary(tokenizer))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return (CausalModel if objective == "causal" else MaskedModel)(network, tokenizer, "random")


@pytest.fixture(scope="module", params=sorted(set(network_names()) - {"diffusion"}))
def model(request: pytest.FixtureRequest) -> CausalModel | MaskedModel:
    return random_model(request.param)


def test_rows_hold_all_but_what_special_tokens_take(model: CausalModel | MaskedModel) -> None:
    blocks = list(model.distributions(SENTENCES))
    causal = model.objective == "causal"
    assert [block.position for block in blocks] == list(range(4 if causal else 3))
    for block in blocks:
        assert block.log_prob.shape == (4, 7 + 1 + causal)
        assert block.log_prob.dtype == np.float64
        mass = np.exp(block.log_prob).sum(axis=1)
        assert (mass < 1.0).all()
        if isinstance(model, CausalModel):
            special = [model.next_token(s[: block.position]).special for s in SENTENCES]
            assert mass == pytest.approx(1.0 - np.array(special), abs=1e-6)
        assert np.array_equal(block.log_prob[1], block.log_prob[3])


@pytest.mark.long
def test_columns_are_words_unknown_and_end(model: CausalModel | MaskedModel) -> None:
    blocks = list(model.distributions(SENTENCES))
    for i, sentence in enumerate(SENTENCES):
        for position in range(3):
            for column, word in enumerate([*model.vocabulary, "unknown"]):
                other = [*sentence[:position], word, *sentence[position + 1 :]]
                scored = model.score([other], ScoringFrame()).log_prob[position]
                assert blocks[position].log_prob[i, column] == pytest.approx(scored, abs=1e-5)
    for i, sentence in enumerate(SENTENCES):
        if isinstance(model, CausalModel):
            for position in range(4):
                after = model.next_token(sentence[:position])
                wanted = np.log([*after.words, after.unk, after.eos])
                assert blocks[position].log_prob[i] == pytest.approx(wanted, abs=1e-5)


def test_the_paired_values_in_double_precision_agree_to_ten_digits() -> None:
    for architecture in ("gpt2", "bert"):
        exact = random_model(architecture)
        exact.model.double()
        blocks = list(exact.distributions(SENTENCES))
        scores = exact.score(SENTENCES, ScoringFrame())
        columns = {word: i for i, word in enumerate(exact.vocabulary)}
        for value, s, position in zip(scores.log_prob, scores.sentence, scores.position, strict=True):
            word = SENTENCES[s][position] if position < 3 else None
            column = 8 if word is None else columns.get(word, 7)
            assert blocks[position].log_prob[s, column] == pytest.approx(value, abs=1e-10)


def test_the_network_is_left_as_it_was(model: CausalModel | MaskedModel) -> None:
    before = model.score(SENTENCES, ScoringFrame()).log_prob
    next(iter(model.distributions(SENTENCES)))
    assert np.array_equal(model.score(SENTENCES, ScoringFrame()).log_prob, before)
    assert not getattr(model.model, model._head)._forward_pre_hooks


def test_what_cannot_be_done_is_refused(model: CausalModel | MaskedModel) -> None:
    for wrong in ([["w0"], ["w0", "w1"]], [[]], []):
        with pytest.raises(InputError, match="of one length"):
            list(model.distributions(wrong))
    if model.longest is not None:
        with pytest.raises(InputError, match="takes at most"):
            list(model.distributions([["w0"] * 11]))


def test_weights_that_are_not_numbers_are_reported() -> None:
    for architecture in ("gpt2", "bert"):
        broken = random_model(architecture)
        with torch.no_grad():
            next(broken.model.parameters()).fill_(torch.nan)
        with pytest.raises(InputError, match="not finite"):
            list(broken.distributions([["w0"]]))


@pytest.mark.long
def test_a_network_is_compared_with_the_truth(model: CausalModel | MaskedModel) -> None:
    """Nothing is wrong by more than the network's rounding: the paired estimate is that of its scores."""
    from truesource.evaluation.core.comparison import compare_in

    pcfg = PCFG.from_text("S -> A S 0.5 | A 0.5\nA -> w0 0.25 | w1 0.25 | w2 0.25 | zebra 0.25")
    lengths, sentences = LengthRange(1, 3), [["w0"], ["w1", "zebra"], ["w2", "w2", "w0"], ["w0"]]
    taken: DistributionModel = model
    found = compare_distributions(taken, Setting(pcfg, sentences, lengths=lengths))
    plain = compare_in(model, Setting(pcfg, sentences, lengths=lengths)).measures["kl"]
    assert found.scores["kl_paired"].value == pytest.approx(plain.value, abs=1e-5)
    assert found.scores["kl"].value > 0.0
    kept = cache_truth(taken, Setting(pcfg, sentences, lengths=lengths))
    assert kept.compare(taken)["kl"] == pytest.approx(found.scores["kl"].value, abs=1e-5)
