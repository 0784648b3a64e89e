"""Vectors added to a layer: hidden states and predictions are those of the changed network; networks untrained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from saved_models import WORDS, save_model, save_piece_model
from torch.nn import functional

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.hidden_states import hidden_states
from truesource.lmtrain.model_registry import model_settings, network_architecture, settings_class
from truesource.lmtrain.models import load_model
from truesource.lmtrain.patching import adding, patched_log_probs, places, untrained
from truesource.lmtrain.tokenizer import build_tokenizer
from truesource.lmtrain.word_models import CausalModel
from truesource.lmtrain.word_vocabulary import WordVocabulary

pytestmark = pytest.mark.usefixtures("one_thread")

PREFIXES = [["w0", "w1", "w2"], ["w3"], ["w6", "w5", "w4", "w3", "w3"], ["unheard", "w1"], ["w2", "w2", "w0"]]
LAYERS = 2
CHANGED = ("gpt2", "llama", "opt", "adaptive", "gated_cnn")


def build(architecture: str, **others: Any) -> CausalModel:
    """A small network with large random weights."""
    tokenizer = build_tokenizer([WORDS], objective="causal")
    given = {"layers": LAYERS, "dim": 8, "heads": 2, "max_positions": 10, **others}
    known = settings_class(architecture).model_fields
    config = model_settings(architecture=architecture, **{key: given[key] for key in given if key in known})
    torch.manual_seed(1)
    network = network_architecture(architecture).build(config, WordVocabulary(tokenizer))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return CausalModel(network, tokenizer, "m")


def random_change(seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((len(PREFIXES), 8)).astype(np.float32)


def following(model: CausalModel) -> np.ndarray:
    """What ``distributions`` says of the position after each prefix."""
    return np.concatenate([list(model.distributions([prefix]))[-1].log_prob for prefix in PREFIXES])


@pytest.mark.parametrize("architecture", CHANGED)
@pytest.mark.parametrize("layer", range(LAYERS + 1))
def test_no_change_gives_the_models_own_distributions(architecture: str, layer: int) -> None:
    model = build(architecture)
    found = patched_log_probs(model, PREFIXES, layer, np.zeros((len(PREFIXES), 8), dtype=np.float32))
    assert found.shape == (len(PREFIXES), len(WORDS) + 2)
    assert found == pytest.approx(following(model), abs=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("architecture", ["gpt2", "llama", "opt", "adaptive"])
@pytest.mark.parametrize("collected", [False, True], ids=["first", "again"])
@pytest.mark.parametrize("layer", range(LAYERS + 1))
def test_hidden_states_are_those_before_and_the_change(architecture: str, layer: int, collected: bool) -> None:
    """At the last word of the layer alone; other words keep their vectors in all layers, and so do layers below."""
    model = build(architecture)
    if collected:  # hooks of `transformers` are there already
        hidden_states(model, PREFIXES)
    place, change = places(model)[layer], random_change()
    for prefix, vector in zip(PREFIXES, change, strict=True):
        before = hidden_states(model, [prefix])
        with adding(place, torch.from_numpy(vector)[None], torch.tensor([len(prefix)])):
            after = hidden_states(model, [prefix])
        wanted = before[layer].copy()
        wanted[-1] += vector
        np.testing.assert_array_equal(after[layer], wanted)
        for other in range(LAYERS + 1):
            np.testing.assert_array_equal(after[other][:-1], before[other][:-1])
            if other != layer:
                assert (after[other][-1] == before[other][-1]).all() == (other < layer)
    for layer_after, rows in hidden_states(model, PREFIXES).items():
        np.testing.assert_array_equal(rows, hidden_states(build(architecture), PREFIXES)[layer_after])


@pytest.mark.parametrize("architecture", CHANGED)
def test_the_last_layer_changes_the_input_of_the_output_layer(architecture: str) -> None:
    model, change = build(architecture), random_change()
    found = patched_log_probs(model, PREFIXES, LAYERS, change)
    head = getattr(model.model, network_architecture(architecture).head)
    words = model.encoder
    columns = [*words.word_ids.tolist(), words.unk, words.eos]
    for row, prefix, vector in zip(found, PREFIXES, change, strict=True):
        hidden = torch.from_numpy(hidden_states(model, [prefix])[LAYERS][-1:] + vector)
        with torch.no_grad():
            wanted = functional.log_softmax(head(hidden).double(), dim=1)[0, columns]
        assert row == pytest.approx(wanted.numpy(), abs=1e-5)


@pytest.mark.parametrize("architecture", ["gpt2", "gated_cnn"])
def test_a_change_of_what_enters_is_another_word(architecture: str) -> None:
    """The vector of another word in place of the last one's makes the network predict as after that word."""
    model = build(architecture)
    others = [[*prefix[:-1], "w1"] for prefix in PREFIXES]
    ends = np.cumsum([len(prefix) for prefix in PREFIXES]) - 1
    change = (hidden_states(model, others)[0] - hidden_states(model, PREFIXES)[0])[ends]
    found = patched_log_probs(model, PREFIXES, 0, change)
    wanted = np.concatenate([list(model.distributions([other]))[-1].log_prob for other in others])
    assert found == pytest.approx(wanted, abs=1e-4)
    assert not np.allclose(found, following(model), atol=1e-2)


@pytest.mark.long
@pytest.mark.parametrize("architecture", CHANGED)
@pytest.mark.parametrize("layer", range(LAYERS + 1))
def test_a_batch_is_its_sentences_one_by_one(architecture: str, layer: int) -> None:
    model, change = build(architecture), random_change()
    together = patched_log_probs(model, PREFIXES, layer, change)
    alone = [
        patched_log_probs(model, [prefix], layer, vector[None]) for prefix, vector in zip(PREFIXES, change, strict=True)
    ]
    assert together == pytest.approx(np.concatenate(alone), abs=1e-5)
    assert not np.allclose(together, following(model), atol=1e-2)
    assert following(model) == pytest.approx(following(build(architecture)), abs=0.0), "no hook is left behind"


def test_a_list_of_as_many_other_modules_is_not_taken_for_the_blocks() -> None:
    model = build("adaptive", layers=1, cutoffs=(6,))  # one tail cluster, one block
    assert places(model)[0].module is model.model.transformer.h[0]
    assert places(model)[1].module is model.model.transformer.ln_f


@pytest.mark.long
def test_what_cannot_be_changed_is_refused(tmp_path: Path) -> None:
    one, change = [["w1"]], np.zeros((1, 8), dtype=np.float32)

    def refused(model: Any, sentences: Any = one, layer: int = 0, vectors: Any = change) -> InputError:
        with pytest.raises(InputError) as caught:
            patched_log_probs(model, sentences, layer, vectors)
        return caught.value

    assert refused(build("lstm")).code == "missing-ability"
    assert "m has none; use a transformer or gated_cnn" in str(refused(build("lstm")))
    masked = load_model(save_model(tmp_path / "bert", "bert"))
    pieces = load_model(save_piece_model(tmp_path / "bpe", [["ab", "abc"] * 9], "bpe", 12))
    for other in (masked, pieces):
        assert refused(other).code == "missing-ability"
        assert "needs a causal network of whole words" in str(refused(other))
    model = build("gpt2")
    assert "has layers 0 to 2, there is no layer 3" in str(refused(model, layer=3))
    assert "there is no layer -1" in str(refused(model, layer=-1))
    assert "sentence 2 has no words" in str(refused(model, [["w1"], []], 0, np.zeros((2, 8))))
    assert "expecting a change of 1x8, a vector for each sentence, got 1x7" in str(
        refused(model, vectors=change[:, 1:])
    )
    assert "not finite" in str(refused(model, vectors=change + np.nan))
    assert "takes at most 9" in str(refused(model, [["w1"] * 10]))


@pytest.mark.long
@pytest.mark.parametrize("architecture", ["gpt2", "llama", "bert", "opt"])
def test_an_untrained_network_has_weights_of_its_seed(tmp_path: Path, architecture: str) -> None:
    model = load_model(save_model(tmp_path / "m", architecture))
    state = {name: value.clone() for name, value in model.model.state_dict().items()}
    torch.manual_seed(9)
    noise = torch.rand(1)
    torch.manual_seed(9)
    fresh = untrained(model, 4)
    assert torch.equal(torch.rand(1), noise), "random numbers elsewhere are left alone"
    again, other = untrained(model, 4), untrained(model, 5)
    assert (fresh.name, model.name) == ("m-untrained", "m")
    assert fresh.tokenizer is model.tokenizer and fresh.vocabulary == model.vocabulary
    changed = False
    for name, value in fresh.model.state_dict().items():
        assert torch.equal(value, again.model.state_dict()[name])
        assert torch.equal(state[name], model.model.state_dict()[name]), "the original is as it was"
        changed |= not torch.equal(value, other.model.state_dict()[name])
    assert changed
    torch.manual_seed(4)
    drawn = type(model.model)(model.model.config).state_dict()
    assert all(torch.equal(value, drawn[name]) for name, value in fresh.model.state_dict().items())
    first, second = (hidden_states(each, PREFIXES)[1] for each in (model, fresh))
    assert first.shape == second.shape and not np.allclose(first, second, atol=0.1)


def test_an_untrained_network_of_pieces_scores_words(tmp_path: Path) -> None:
    model = load_model(save_piece_model(tmp_path / "bpe", [["ab", "abc"] * 9], "bpe", 12))
    fresh = untrained(model, 1)
    before = fresh.log_probs(model.aligner.align([["ab", "abc"]]).rows())
    assert np.isfinite(before).all()
    assert not np.allclose(before, model.log_probs(model.aligner.align([["ab", "abc"]]).rows()))
