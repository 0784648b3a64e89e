"""What every architecture must keep to: who sees whom, going on from a cache, padding, sizes, settings, loading."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from truesource.generator.language_model import ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.architectures.networks import usual_cutoffs
from truesource.lmtrain.architectures.settings import names
from truesource.lmtrain.architectures.states import RecurrentStates
from truesource.lmtrain.architectures.target_head import TargetHead
from truesource.lmtrain.config import ModelConfig
from truesource.lmtrain.data import causal_batch, masked_batch
from truesource.lmtrain.model_registry import (
    model_settings,
    network_architecture,
    network_names,
    network_of,
    settings_class,
)
from truesource.lmtrain.models import load_model
from truesource.lmtrain.scoring import predictor
from truesource.lmtrain.tokenizer import build_tokenizer
from truesource.lmtrain.word_models import KINDS, CausalModel
from truesource.lmtrain.word_vocabulary import WordVocabulary

CAUSAL = [name for name in network_names() if settings_class(name).objective == "causal"]
MASKED = [name for name in network_names() if settings_class(name).objective != "causal"]
#: networks that transformers does not have
OURS = ("adaptive", "lstm", "gated_cnn")
WORDS = list("abcdefghijkl")
SIZE = len(WORDS) + 5
#: one more of an architecture whose settings change its computation
SPECIAL: dict[str, dict[str, Any]] = {
    "llama": {"kv_heads": 1, "tie_words": True},
    "gated_cnn": {"kernel_size": 2, "tie_words": False},
    "lstm": {"tie_words": False},
    "adaptive": {"cutoffs": (7, 11)},
    "deberta-v2": {"variant": "v2"},
    "deberta-v3": {"variant": "v3"},
    "roberta": {"local_start": True},
    "deberta": {"local_start": True},
    "opt": {"tie_words": False},
}


def settings_of(name: str, **more: Any) -> ModelConfig:
    limit = {"max_positions": 10} if "max_positions" in settings_class(name).model_fields else {}
    heads = {"heads": 2} if "heads" in settings_class(name).model_fields else {}
    return model_settings(architecture=name, **{"dim": 16, "dropout": 0.0, **limit, **heads, **more})


def random_network(config: ModelConfig) -> Any:
    """Untrained, with large weights, so that every position has a distribution of its own."""
    architecture = network_architecture(config.architecture)
    torch.manual_seed(0)
    network = architecture.build(config, WordVocabulary(build_tokenizer([WORDS], objective=architecture.objective)))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return network.eval()


NETWORKS = {name: random_network(settings_of(name)) for name in network_names()}
NETWORKS |= {f"{key}, special": random_network(settings_of(key.split("-")[0], **some)) for key, some in SPECIAL.items()}
CAUSAL_NETWORKS = [key for key in NETWORKS if key.split(",")[0] in CAUSAL]
MASKED_NETWORKS = [key for key in NETWORKS if key.split(",")[0].split("-")[0] in MASKED]


def tokens(rows: int, length: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(5, SIZE, (rows, length), generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def logits_of(network: Any, ids: torch.Tensor, **more: Any) -> torch.Tensor:
    found: torch.Tensor = network(input_ids=ids, **more).logits
    return found


def test_every_name_is_an_architecture() -> None:
    assert names() == sorted([*network_names(), "ngram"])
    for name in network_names():
        architecture = network_architecture(name)
        assert architecture.settings is settings_class(name)
        assert settings_class(name).model_fields["architecture"].default == name
        assert network_of(NETWORKS[name].config) is architecture
        assert isinstance(getattr(NETWORKS[name], architecture.head), nn.Module)
        assert (name in OURS) == type(NETWORKS[name]).__module__.startswith("truesource.lmtrain")
    assert network_of(SimpleNamespace(model_type="elman")) is None


def test_all_networks_are_tested_here() -> None:
    assert sorted(CAUSAL_NETWORKS + MASKED_NETWORKS) == sorted(NETWORKS)


# -- who sees whom ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", CAUSAL_NETWORKS)
def test_a_causal_model_sees_no_later_token_and_every_earlier_one_within_reach(key: str) -> None:
    network, ids = NETWORKS[key], tokens(3, 8)
    before = logits_of(network, ids)
    assert before.shape == (3, 8, SIZE)
    reach = network.config.num_hidden_layers * (network.config.kernel_size - 1) if "gated_cnn" in key else 8
    for place in range(8):
        changed = ids.clone()
        changed[:, place] = 5 + (changed[:, place] - 4) % (SIZE - 5)
        moved = (logits_of(network, changed) - before).abs().amax(dim=2)
        assert (moved[:, :place] == 0).all() or moved[:, :place].max() < 1e-6
        assert (moved[:, place : place + reach + 1] > 1e-4).all()
        assert (moved[:, place + reach + 1 :] < 1e-6).all()


@pytest.mark.parametrize("key", MASKED_NETWORKS)
def test_a_masked_model_sees_every_position(key: str) -> None:
    network, ids = NETWORKS[key], tokens(3, 8)
    before = logits_of(network, ids)
    assert before.shape == (3, 8, SIZE)
    for place in range(8):
        changed = ids.clone()
        changed[:, place] = 5 + (changed[:, place] - 4) % (SIZE - 5)
        assert ((logits_of(network, changed) - before).abs().amax(dim=2) > 1e-4).all()


@pytest.mark.parametrize("key", NETWORKS)
def test_places_matter_and_not_words_alone(key: str) -> None:
    ids = torch.tensor([[5, 6, 7], [6, 5, 7]])
    found = logits_of(NETWORKS[key], ids)[:, -1]
    assert (found[0] - found[1]).abs().max() > 1e-4


@pytest.mark.parametrize("key", NETWORKS)
def test_every_weight_is_trained(key: str) -> None:
    """One that the loss does not reach would stop a run of several processes."""
    network, architecture = NETWORKS[key], network_architecture(name_of(NETWORKS[key]))
    ids = tokens(6, 9)
    batch = {"input_ids": ids, "positions": torch.arange(6 * 9), "targets": tokens(6, 9, seed=1).flatten()}
    with predictor(network, architecture.head) as predict:
        predict.loss(network, batch).backward()
    without = [name for name, parameter in network.named_parameters() if parameter.grad is None]
    network.zero_grad()
    assert without == []


# -- going on from a cache --------------------------------------------------------------------------------


@pytest.mark.parametrize("key", CAUSAL_NETWORKS)
@pytest.mark.parametrize("first", [1, 4])
@torch.no_grad()
def test_step_by_step_is_one_pass(key: str, first: int) -> None:
    network, ids = NETWORKS[key], tokens(4, 9)
    whole = logits_of(network, ids)
    output = network(input_ids=ids[:, :first], use_cache=True)
    found = [output.logits]
    for place in range(first, 9):
        output = network(input_ids=ids[:, place : place + 1], past_key_values=output.past_key_values, use_cache=True)
        found.append(output.logits)
    assert torch.cat(found, dim=1) == pytest.approx(whole, abs=1e-5)


@pytest.mark.parametrize("key", CAUSAL_NETWORKS)
@torch.no_grad()
def test_rows_are_dropped_and_repeated_on_the_way(key: str) -> None:
    network, rows = NETWORKS[key], torch.tensor([2, 0, 2, 3, 2])
    ids = tokens(4, 4)
    cache = network(input_ids=ids, use_cache=True).past_key_values
    cache.batch_select_indices(rows)
    more = tokens(5, 2, seed=1)
    for place in range(2):
        output = network(input_ids=more[:, place : place + 1], past_key_values=cache, use_cache=True)
        cache = output.past_key_values
        expected = logits_of(network, torch.cat([ids[rows], more[:, : place + 1]], dim=1))
        assert output.logits[:, 0] == pytest.approx(expected[:, -1], abs=1e-5)


@pytest.mark.parametrize("key", CAUSAL_NETWORKS)
def test_without_asking_ours_keep_nothing(key: str) -> None:
    if key.split(",")[0] in OURS:
        assert NETWORKS[key](input_ids=tokens(1, 3)).past_key_values is None
    assert NETWORKS[key](input_ids=tokens(1, 3), use_cache=False).past_key_values is None


def test_states_are_picked_by_number_or_by_mask() -> None:
    states = RecurrentStates([torch.arange(6).reshape(2, 3), torch.arange(3)[None]], dim=1)
    kept = states.tensors[0]
    states.batch_select_indices(torch.tensor([False, True, True]))
    assert [tensor.tolist() for tensor in states.tensors] == [[[1, 2], [4, 5]], [[1, 2]]]
    states.batch_select_indices(torch.tensor([1, 1, 0]))
    assert [tensor.tolist() for tensor in states.tensors] == [[[2, 2, 1], [5, 5, 4]], [[2, 2, 1]]]
    assert kept.tolist() == [[0, 1, 2], [3, 4, 5]]


# -- padding ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", NETWORKS)
def test_padded_batches_give_what_single_ones_give(key: str) -> None:
    """As training and scoring pad them: causal models without an attention mask, masked ones with it."""
    network = NETWORKS[key]
    objective = network_of(network.config).objective  # type: ignore[union-attr]
    vocabulary = WordVocabulary(build_tokenizer([WORDS], objective=objective))
    rows = [row.numpy() for row in (tokens(1, 8)[0], tokens(1, 1, seed=1)[0], tokens(1, 5, seed=2)[0])]

    def batch_of(some: list[Any]) -> dict[str, torch.Tensor]:
        if objective == "causal":
            return causal_batch(some, vocabulary)
        hidden = np.zeros((len(some), max(map(len, some))), dtype=bool)
        hidden[:, 0] = True
        return masked_batch(some, hidden, vocabulary)

    with predictor(network, network_architecture(name_of(network)).head) as predict, torch.no_grad():
        together = batch_of(rows)
        assert ("attention_mask" in together) == (objective != "causal")
        found = predict(network, together)
        alone = torch.cat([predict(network, batch_of([row])) for row in rows])
    assert found == pytest.approx(alone, abs=1e-5)


def name_of(network: Any) -> str:
    found = network_of(network.config)
    assert found is not None
    return str(found.settings.model_fields["architecture"].default)


# -- lengths ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", NETWORKS)
def test_the_longest_input_is_read_and_a_longer_one_refused_by_the_loader(key: str) -> None:
    network = NETWORKS[key]
    architecture = network_architecture(name_of(network))
    longest = architecture.longest(network.config)
    assert longest == (None if "max_positions" not in architecture.settings.model_fields else 10)
    assert longest == settings_of(name_of(network)).longest
    assert torch.isfinite(logits_of(network, tokens(2, longest or 300))).all()
    causal = architecture.objective == "causal"
    tokenizer = build_tokenizer([WORDS], objective=architecture.objective)
    model = KINDS[architecture.objective](network, tokenizer, "m")
    if longest is None:
        assert model.longest is None
        assert model.score([["a"] * 150], ScoringFrame()).log_prob.shape == (151,)
    else:
        most = 9 if causal else 8
        assert model.longest == most
        model.score([["a"] * most], ScoringFrame())
        with pytest.raises(InputError, match=f"at most {most}"):
            model.score([["a"] * (most + 1)], ScoringFrame())


@pytest.mark.long
@pytest.mark.parametrize("name", ["lstm", "gated_cnn"])
def test_a_model_without_a_limit_samples_to_the_usual_one(name: str) -> None:
    model = CausalModel(NETWORKS[name], build_tokenizer([WORDS]), "m")
    with torch.no_grad():
        bias = model.model.lm_head.bias
        before = bias.clone()
        bias[3] = -1e4  # never ends
    cut = model.sample(2, seed=0)
    bias.data.copy_(before)
    assert [len(sentence) for sentence in cut.sentences] == [200, 200]
    assert not cut.finished.any()
    assert len(model.sample(3, seed=0, max_tokens=4).sentences) == 3


# -- adaptive softmax -------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["adaptive", "adaptive, special"])
def test_adaptive_logits_are_log_probabilities(key: str) -> None:
    network = NETWORKS[key]
    found = logits_of(network, tokens(3, 6)).double()
    assert torch.logsumexp(found, dim=-1) == pytest.approx(torch.zeros(3, 6), abs=1e-5)
    softmax = network.head.softmax
    hidden = torch.randn(4, 16)
    first, *_ = softmax.cutoffs
    expected = softmax.head(hidden).log_softmax(-1)
    clusters = [
        expected[:, first + i, None] + softmax.tail[i](hidden).log_softmax(-1) for i in range(softmax.n_clusters)
    ]
    assert network.head(hidden).detach().numpy() == pytest.approx(
        torch.cat([expected[:, :first], *clusters], dim=1).detach().numpy(), abs=1e-5
    )


def test_training_an_adaptive_softmax_makes_no_full_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    network = NETWORKS["adaptive, special"]
    batch = causal_batch([np.array([5, 8, 12]), np.array([16, 7])], WordVocabulary(build_tokenizer([WORDS])))
    with predictor(network, "head") as predict:
        full = torch.nn.functional.cross_entropy(predict(network, batch), batch["targets"], reduction="none")

        def refuse(*_: Any) -> None:
            raise AssertionError("a full matrix of log probabilities")

        monkeypatch.setattr(type(network.head.softmax), "log_prob", refuse)
        each = predict.loss(network, batch, reduction="none", use_cache=False)
        mean = predict.loss(network, batch)
    assert isinstance(network.head, TargetHead)
    assert each.detach().numpy() == pytest.approx(full.detach().numpy(), abs=1e-5)
    assert mean.item() == pytest.approx(full.mean().item(), abs=1e-6)
    mean.backward()
    assert all(parameter.grad is not None for parameter in network.head.parameters())
    network.zero_grad()


def test_in_a_distributed_run_every_cluster_has_a_gradient() -> None:
    """Also one that no target of the batch is in, which gradients of several processes could not be summed without."""
    network = NETWORKS["adaptive, special"]
    batch = causal_batch([np.array([5, 6])], WordVocabulary(build_tokenizer([WORDS])))

    def gradients() -> list[torch.Tensor | None]:
        network.zero_grad()
        with predictor(network, "head") as predict:
            predict.loss(network, batch).backward()
        return [parameter.grad for parameter in network.head.parameters()]

    alone = gradients()
    assert [grad is None for grad in alone] == [False, True, True, True, True]
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        together = gradients()
    finally:
        torch.distributed.destroy_process_group()
        network.zero_grad()
    assert together[0] == pytest.approx(alone[0], abs=0)
    assert all(grad is not None and (grad == 0).all() for grad in together[1:])


@pytest.mark.parametrize("key", ["gpt2", "lstm", "bert"])
def test_the_loss_of_the_others_is_the_cross_entropy(key: str) -> None:
    network, vocabulary = NETWORKS[key], WordVocabulary(build_tokenizer([WORDS]))
    batch = causal_batch([np.array([5, 8, 12]), np.array([16, 7])], vocabulary)
    with predictor(network, network_architecture(key).head) as predict, torch.no_grad():
        each = predict.loss(network, batch, reduction="none")
        exact = predict(network, batch).double().log_softmax(-1).gather(1, batch["targets"][:, None])[:, 0]
        assert -each.numpy() == pytest.approx(exact.numpy(), abs=1e-5)
        assert predict.loss(network, batch).item() == pytest.approx(-exact.mean().item(), abs=1e-5)


@pytest.mark.parametrize(
    ("size", "dim", "expected"),
    [(23926, 256, [2392, 7975]), (23926, 8, [2392]), (17, 16, [6]), (21, 16, [6, 7]), (6, 16, [5])],
)
def test_usual_cutoffs_fit_every_vocabulary(size: int, dim: int, expected: list[int]) -> None:
    assert usual_cutoffs(size, dim) == expected


# -- settings ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cutoffs": (4,)}, "from 5 to 16"),
        ({"cutoffs": (6, 17)}, "from 5 to 16"),
        ({"cutoffs": (6, 8, 10)}, "need a dim of 64 or more"),
    ],
)
def test_cutoffs_that_do_not_fit_the_vocabulary_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        random_network(settings_of("adaptive", **settings))


@pytest.mark.parametrize("key", NETWORKS)
def test_written_settings_are_read_again(key: str) -> None:
    name = key.split(",")[0]
    some = SPECIAL.get(name, {}) if "special" in key else {}
    config = settings_of(name.split("-")[0], **some)
    assert model_settings(**json.loads(config.model_dump_json())) == config


def test_settings_reach_the_networks() -> None:
    assert NETWORKS["llama, special"].config.num_key_value_heads == 1
    assert NETWORKS["gated_cnn, special"].blocks[0].conv.kernel_size == (2,)
    assert NETWORKS["adaptive, special"].config.cutoffs == [7, 11]
    assert NETWORKS["deberta-v2, special"].deberta.encoder.conv is not None
    assert NETWORKS["deberta-v3, special"].deberta.encoder.conv is None
    for name, tied in (("opt", True), ("lstm", True), ("gated_cnn", True), ("llama", False)):
        for key, expected in ((name, tied), (f"{name}, special", not tied)):
            network = NETWORKS[key]
            same = network.get_output_embeddings().weight is network.get_input_embeddings().weight
            assert same == expected, key


# -- saved and loaded -------------------------------------------------------------------------------------


@dataclass
class Saved:
    folder: Path
    network: Any
    causal: bool


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Saved]:
    root = tmp_path_factory.mktemp("saved")
    made = {}
    for key, network in NETWORKS.items():
        causal = network_architecture(name_of(network)).objective == "causal"
        folder = root / key.replace(", ", "-")
        network.save_pretrained(folder)
        build_tokenizer([WORDS], objective="causal" if causal else "masked").save_pretrained(folder)
        made[key] = Saved(folder, network, causal)
    return made


@pytest.mark.long
@pytest.mark.parametrize("key", NETWORKS)
def test_our_loader_loads_all(key: str, saved: dict[str, Saved]) -> None:
    some = saved[key]
    model = load_model(some.folder, device="cpu")
    assert isinstance(model, KINDS[network_of(some.network.config).objective])  # type: ignore[union-attr]
    ids = tokens(3, 7)
    assert torch.equal(logits_of(model.model, ids), logits_of(some.network, ids))
    assert model.model.num_parameters() == some.network.num_parameters()
